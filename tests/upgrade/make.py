"""How the fixtures of a version were made: by that version's own server, through its pages and API alone.

In a checkout of the version, with a home whose name says nothing of the machine (nor should the checkout's: what the
model server answers names the model's file)::

    HARNESSLAB_HOME=/tmp/harnesslab-home script/server --port 18831
    HARNESSLAB_HOME=/tmp/harnesslab-home .venv/bin/harnesslab demo

In a checkout of today, once its training runs::

    python -m tests.upgrade.make fill http://127.0.0.1:18831 /tmp/harnesslab-home
    python -m tests.upgrade.make bundles http://127.0.0.1:18831 /tmp/harnesslab-home tests/upgrade/VERSION/bundles
    python -m tests.upgrade.make leave http://127.0.0.1:18831 /tmp/harnesslab-home

Then, with the server stopped at once::

    python -m tests.upgrade.make home /tmp/harnesslab-home tests/upgrade/VERSION/home.tar.zst

and the same with `DATABASE_URL` set and another home for `dump URL tests/upgrade/VERSION/postgres.sql.zst`.
"""

from __future__ import annotations

import io
import json
import random
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backports import zstd

from tests.formats import test_damage as makers
from tests.formats.test_odd_values import FILES, unit_of
from tests.formats.test_tau_bench import trials
from tests.rig import native_lines
from tests.upgrade.visitor import Visitor, waited

LEFT_OUT = {"broker", "engines.lock", "engines.sock", "locks", "serve.address", "serve.lock", "spool", "static"}
"""What of a home is made anew at each start."""
SAMPLES = "hooks"
"""What git puts into each repository, and runs nothing of."""
PROJECT = "brought along"


def files() -> Iterator[tuple[str, bytes]]:
    """Yield one small file of each shape that is read, by name."""
    yield "native.jsonl", native_lines(2).encode()
    for name, value in FILES.items():
        yield f"{name}.json", unit_of(name, value).only.read()
    yield "tau.json", json.dumps(trials()).encode()
    makers.damaged = lambda value, chance: value  # they damage what they make
    for make in (makers.inspect_log, makers.atif_file, makers.harbor_folder, makers.harbor_rows, makers.training_run):
        unit = make(random.Random(0))
        members = {path: file.read() for path, file in unit.files.items()}
        yield (f"{unit.name}.zip", zipped(unit.name, members)) if unit.folder else (unit.name, unit.only.read())


def zipped(folder: str, members: dict[str, bytes]) -> bytes:
    """Return a folder as a zip file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, data in members.items():
            archive.writestr(f"{folder}/{path}", data)
    return out.getvalue()


def fill(address: str, home: Path) -> None:
    """Do what people do: import, rerun, compare, note, freeze, decide, delete."""
    visitor = visit(address, home)
    for name, data in files():
        (result, *_) = visitor.send_files(PROJECT, {name: data})["results"]
        say(f"{name}: {result['status']} {result['format']} {result['reason']}")
    live = waited(lambda: live_rollouts(visitor))
    first, second, *_ = (row["id"] for row in live)
    asked = [visitor.ask(f"/rollouts/{number}/reruns", plan)["id"] for number, plan in plans(first, second)]
    annotate(visitor, first, second)
    case = visitor.ask(f"/rollouts/{first}/regressions", regression(visitor, first))
    asked.append(visitor.ask(f"/regressions/{case['id']}/measure", {"attempts": 2, "seed": "drawn"})["id"])
    stopped = visitor.ask(f"/rollouts/{second}/reruns", {"mode": "live", "attempts": 2})
    visitor.ask(f"/reruns/{stopped['id']}/cancel", {})
    visitor.post("/engines/new/", name="gone", kind="openai", address="http://127.0.0.1:9", model="m", ceiling=1)
    waited(lambda: all(ended(visitor, number) for number in asked))
    for number in asked:
        say(f"rerun {number}: {visitor.json(f'/reruns/{number}')['sentence']}")
    waited(lambda: trained(visitor))


def leave(address: str, home: Path) -> None:
    """Leave work in the queue: one attempt that runs, two that wait."""
    visitor = visit(address, home)
    parent = live_rollouts(visitor)[1]["id"]
    asked = visitor.ask(f"/rollouts/{parent}/reruns", {"mode": "live", "attempts": 3, "seed": "drawn"})
    waited(lambda: visitor.json(f"/reruns/{asked['id']}")["attempts"][0]["rollout"])


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def visit(address: str, home: Path) -> Visitor:
    """Log in as a home's first admin."""
    return Visitor(address, (home / "first-admin").read_text().splitlines()[0])


def live_rollouts(visitor: Visitor) -> list[dict[str, Any]]:
    """Return the demonstration's rollouts on the real model once two of them have ended."""
    rows = visitor.json("/rollouts?project=demonstration&origin=live")["rows"]
    able = [row for row in rows if row["grade"] == "live-rerunnable" and not row["mode"]]
    done = [row for row in able if row["outcome"] != "running" and row["steps"] > 1]
    return sorted(done, key=lambda row: int(row["id"])) if len(done) > 1 else []


def plans(first: int, second: int) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield reruns of each kind."""
    yield first, {"mode": "recorded"}
    yield second, {"mode": "live", "attempts": 2}
    yield second, {"mode": "live", "attempts": 2, "seed": "drawn"}
    yield first, {"mode": "live", "from_step": 1}
    yield first, {"mode": "hybrid", "switches": {"model": "recorded", "tool:run": "live"}}


def annotate(visitor: Visitor, first: int, second: int) -> None:
    """Write notes and a finding, keep views, make a user and a token, delete a rollout."""
    visitor.post(f"/rollouts/{first}/notes/", text="The first step looks right.\nSee <b>step 1</b>.", step=0)
    visitor.post(f"/rollouts/{second}/notes/", text="Compare with the one before.")
    visitor.post("/rollouts/views/", name="live ones", query="project=demonstration&origin=live")
    pair = f"a={first}&b={second}"
    visitor.get(f"/compare/?{pair}")
    visitor.post("/rollouts/views/", name="the pair", query=f"ids={first}.{second}")
    visitor.post(f"/compare/override/?{pair}", cause="user", reason="Two cases, two tasks.")
    visitor.post("/account/tokens/", name="for a script", scope="viewer")
    visitor.post("/account/users/", name="olga", password="olga-has-a-long-one", role="operator")
    gone = visitor.json(f"/rollouts?project={PROJECT.replace(' ', '+')}")["rows"][-1]["id"]
    visitor.post(f"/rollouts/{gone}/delete/", reason="It was brought along by mistake.")


def regression(visitor: Visitor, rollout: int) -> dict[str, object]:
    """Return a case that freezes the first command of a rollout."""
    events = visitor.json(f"/rollouts/{rollout}/events")["rows"]
    step = next(event["step"] for event in events if event["kind"] == "tool_call")
    return {"name": "the first command", "from_step": step, "predicate": {"what": "tool call", "tool": "run"}}


def ended(visitor: Visitor, rerun: int) -> bool:
    """Say whether a rerun has ended."""
    return bool(visitor.json(f"/reruns/{rerun}")["ended"])


def trained(visitor: Visitor) -> bool:
    """Say whether no training runs."""
    return all(row["state"] != "running" for row in visitor.json("/trainings"))


def bundles(address: str, home: Path, folder: Path) -> None:
    """Export an imported rollout, a live one, a rerun and the demonstration's own, each with its manifest beside it."""
    visitor = visit(address, home)
    folder.mkdir(parents=True, exist_ok=True)
    first = live_rollouts(visitor)[0]["id"]
    rerun = visitor.json(f"/rollouts/{first}/reruns")[-1]["attempts"][0]["rollout"]["id"]
    brought = visitor.json(f"/rollouts?project={PROJECT.replace(' ', '+')}")["rows"]
    chosen = {"live": first, "rerun": rerun, "demonstration": 1}
    chosen |= {f"imported-{row['id']}": row["id"] for row in brought[:3]}
    for name, number in chosen.items():
        row = visitor.json(f"/rollouts/{number}")
        (folder / f"{name}.zip").write_bytes(visitor.get(f"/rollouts/{number}/bundle.zip"))
        (folder / f"{name}.manifest.json").write_bytes(visitor.get(f"/manifests/{row['manifest']}.json"))


def pack_home(home: Path, place: Path) -> None:
    """Keep a home whose server has stopped, without what each start makes anew."""
    with sqlite3.connect(home / "harnesslab.sqlite3") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode=DELETE")
        database.execute("VACUUM")
    database.close()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path in sorted(home.iterdir()):
            if path.name not in LEFT_OUT:
                archive.add(path, path.name, filter=kept)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(zstd.compress(out.getvalue(), 19))


def kept(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out whose file it was, and what nobody wrote."""
    if SAMPLES in Path(info.name).parts:
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def dump(url: str, place: Path) -> None:
    """Keep a PostgreSQL database as statements, which any client runs."""
    command = ["pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=50", url]
    text = subprocess.run(command, check=True, capture_output=True).stdout
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(zstd.compress(text, 19))


def main(command: str, *rest: str) -> None:
    """Do one of the steps above."""
    match command, rest:
        case "fill", (address, home):
            fill(address, Path(home))
        case "leave", (address, home):
            leave(address, Path(home))
        case "bundles", (address, home, folder):
            bundles(address, Path(home), Path(folder))
        case "home", (home, place):
            pack_home(Path(home), Path(place))
        case "dump", (url, place):
            dump(url, Path(place))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
