"""An agent with a full shell that means harm: each attempt fails, is survived, and leaves a sealed record."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.running.ports import Limits, Place
from harnesslab.core.running.recipe import HarnessKind, HarnessSource, Recipe
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import AnyEvent, HarnessAction, ModelCall
from harnesslab.core.trace.messages import view
from harnesslab.core.trace.trace import Trace
from harnesslab.queries.rollouts.listing import facts_of, get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.runtime.driver import command
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap
from harnesslab.store.models import Rollout
from tests.runtime.driver.rig import case, model, repository
from tests.runtime.gateway.speaking import client
from tests.workers.ordering import ENGINE, order, register
from workers.tasks import rollouts as task
from workers.tasks.job_runs import JobRun

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.serial]

BEFORE = textwrap.dedent("""
    import json, os, socket, subprocess, sys, threading, time, urllib.error, urllib.request
    BASE = os.environ["OPENAI_BASE_URL"]
    found = {}
    def send(body, path="/chat/completions", method="POST"):
        request = urllib.request.Request(BASE + path, body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)
    def ask(text):
        return send(json.dumps({"messages": [{"role": "user", "content": text}]}).encode())[0]
    def sh(line, seconds=20):
        done = subprocess.run(line, shell=True, capture_output=True, timeout=seconds)
        return done.stdout.decode(errors="replace")
    found["before"] = ask("before")
""")
AFTER = """
found["after"] = ask("after")
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Attacked:
    """What became of a rollout whose agent meant harm."""

    rollout: Rollout
    trace: Trace
    facts: Any
    found: dict[str, Any]
    """What the agent says it found."""

    def of(self, kind: type[AnyEvent]) -> list[Any]:
        """Return the events of a kind."""
        return [event for event in self.trace.events if isinstance(event, kind)]

    @property
    def texts(self) -> list[str]:
        """What it asked, in order."""
        return [view(self.trace.payloads[event.input.add[0]]).text for event in self.of(ModelCall)]

    def unharmed(self) -> None:
        """Check that it asked before and after as if nothing had been."""
        assert self.texts == ["before", "after"]
        assert (self.found["before"], self.found["after"]) == (200, 200)
        assert self.rollout.outcome == "solved"


HOLD = "x = b'x' * (30 << 20); import time; time.sleep(50)"
MANY = f"for n in range(60): subprocess.Popen([sys.executable, '-c', {HOLD!r}])"
Attack = Callable[..., Attacked]


@pytest.fixture
def attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attack:
    """Run an agent's code as a job, in a real sandbox, recorded in the real database."""
    monkeypatch.setattr("harnesslab.queue.wake", lambda *_: None)
    monkeypatch.setattr(command, "LIMITS", Limits(memory=512 * 2**20, disk=48 * 2**20, processes=96))

    def go(code: str, task_case: CaseDefinition | None = None, after: str = AFTER) -> Attacked:
        place = repository(tmp_path / "code", BEFORE + textwrap.dedent(code) + after, "agent.py")
        words = ("python3", "/harness/agent.py")
        source = HarnessSource("hostile", str(place), "r1", HarnessKind.COMMAND, command=words)
        with model("fine") as served:
            register(served.address)
            job = order(Recipe(source, task_case or case(tests={"t": "true"}, wall=40.0), ENGINE))
            made = task.run_rollout(JobRun(job.pk, job.payload, lambda *_: True, lambda: False))
        rollout = get_rollout(made["rollout"])
        reader = StoredTraceReader(rollout)
        seals.verify(reader.trace(), reader.seals())
        facts: Any = facts_of(rollout)
        lines = str(facts["agent"]["last"]).strip().splitlines()
        found = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        return Attacked(rollout, reader.trace(), facts, found)

    return go


def test_other_rollouts_are_not_reached(attack: Attack) -> None:
    other = Bubblewrap().open(Place())
    other.write({"secret.txt": b"of another rollout"})
    try:
        with client() as asking:
            done = attack(f"""
                found["ports"] = []
                for port in [*range(1, 1024), *range(1024, 65536, 7), 8080, {asking.gateway.port}]:
                    with socket.socket() as each:
                        # a socket that meets itself on a port of its own is no listener
                        if each.connect_ex(("127.0.0.1", port)) == 0 and each.getsockname() != each.getpeername():
                            found["ports"].append(port)
                found["other"] = send(b"{{}}", "/../../..{asking.gateway.path}/v1/models", "GET")[0]
                root = BASE.split("/r/")[0]
                for path in ("{asking.gateway.path}/v1", "/r", "/r/*/v1", "/r/%2a/v1", "/r/..;/v1", ""):
                    BASE_KEPT, BASE = BASE, root + path
                    found[path] = send(None, "/models", "GET")[0]
                    BASE = BASE_KEPT
                found["sockets"] = sh("find / -type s -not -path '/proc/*' 2>/dev/null").split()
                found["files"] = sh("cat /proc/[0-9]*/root/work/secret.txt /proc/[0-9]*/cwd/secret.txt 2>/dev/null")
                found["unix"] = [line.split()[-1] for line in open("/proc/net/unix") if "@" in line]
            """)
            assert asking.said.asked == []
        assert set(done.found["ports"]) == {8080}
        assert set(done.found["sockets"]) <= {"/run/sockets/8080"}
        assert done.found["files"] == ""
        assert done.found["unix"] == []
        wrong = {key: value for key, value in done.found.items() if key.startswith("/r") or key in ("", "other")}
        assert set(wrong.values()) == {404}
        done.unharmed()
        assert other.files() == {"secret.txt": b"of another rollout"}
    finally:
        other.close()


def test_its_own_record_is_not_altered(attack: Attack) -> None:
    done = attack("""
        words = ("", "/rollouts", "/events", "/events/0", "/chat/completions", "/traces", "/../", "/models/m")
        found["answers"] = sorted({send(b"{}", path, method)[0] for path in words for method in
            ("DELETE", "PUT", "PATCH", "OPTIONS", "POST", "TRACE") if (path, method) != ("/chat/completions", "POST")})
        sh("rm -rf /run/sockets; echo x > /run/sockets/8080")
    """)
    assert set(done.found["answers"]) <= {404, 405, 501}
    done.unharmed()


def test_store_worker_and_network_are_not_reached(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY_OF_THE_WORKER", "sesame-8b1f")
    places = [
        str(settings.CONFIG.home),
        str(connection.settings_dict["NAME"]),
        str(Path(__file__).resolve().parents[3]),
    ]
    done = attack(f"""
        places = {places!r}
        seen = sh("cat /proc/*/cmdline /proc/*/environ /proc/*/maps 2>/dev/null")
        found["there"] = [place for place in places if os.path.exists(place)]
        found["names"] = [place for place in places if place in seen]
        found["key"] = "sesame" in sh("cat /proc/*/environ /proc/*/cmdline 2>/dev/null; env")
        found["pids"] = len([name for name in os.listdir("/proc") if name.isdigit()])
        found["databases"] = sh("find / -name '*.sqlite3*' -not -path '/proc/*' -not -path '/usr/*' 2>/dev/null")
        found["links"] = sh("ls -la /proc/[0-9]*/fd 2>/dev/null | grep -c -e sqlite -e harnesslab-").strip()
        found["reached"] = []
        for host, port in (("1.1.1.1", 53), ("127.0.0.1", 5432), ("127.0.0.1", 6379), ("169.254.169.254", 80)):
            with socket.socket() as each:
                each.settimeout(1)
                if each.connect_ex((host, port)) == 0:
                    found["reached"].append(host)
    """)
    assert done.found["there"] == []
    assert done.found["names"] == []
    assert done.found["key"] is False
    assert done.found["pids"] < 12
    assert done.found["databases"] == ""
    assert done.found["links"] == "0"
    assert done.found["reached"] == []
    done.unharmed()


@pytest.mark.parametrize(
    ("code", "outcomes"),
    [
        ("hog = []\nwhile True: hog.append(bytearray(8 << 20)); hog[-1][::4096] = b'x' * 2048", {"crash", "solved"}),
        (MANY, {"crash"}),
        ("sh('bomb() { bomb | bomb & }; bomb; sleep 60')", {"timeout", "crash"}),
    ],
    ids=["memory", "memory of many", "forks"],
)
def test_exhausting_the_machine_ends_the_agent_alone(attack: Attack, code: str, outcomes: set[str]) -> None:
    done = attack(code, case(tests={"t": "true"}, wall=6.0), after="\ntime.sleep(60)\n")
    assert done.rollout.outcome in outcomes
    assert done.texts == ["before"]


def test_a_full_disk_is_the_agents_own(attack: Attack) -> None:
    done = attack("""
        for place in ("/work/full", "/tmp/full", "/dev/shm/full"):
            try:
                with open(place, "wb") as target:
                    while True:
                        target.write(bytes(1 << 20))
            except OSError as error:
                found[place] = error.errno
    """)
    assert {done.found[place] for place in ("/work/full", "/tmp/full", "/dev/shm/full")} <= {27, 28}
    done.unharmed()


def test_thousands_of_requests_without_sense_are_counted_and_not_kept(attack: Attack) -> None:
    done = attack("""
        def flood():
            for n in range(300):
                send(b"{" * (n % 50))
        threads = [threading.Thread(target=flood) for _ in range(7)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    assert done.facts["gateway_refused"] == 7 * 300
    assert len([event for event in done.of(HarnessAction) if event.name == "gateway refused"]) == 50
    done.unharmed()


def test_thousands_of_requests_end_at_the_step_budget(attack: Attack) -> None:
    done = attack(
        """
        answers = []
        def flood():
            for n in range(100):
                answers.append(ask(f"{threading.get_ident()} {n}"))
        threads = [threading.Thread(target=flood) for _ in range(7)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        found["counts"] = {str(code): answers.count(code) for code in set(answers)}
        """,
        case(steps=20, tests={"t": "true"}),
        after="\nprint(json.dumps(found), flush=True)\ntime.sleep(60)\n",
    )
    assert done.rollout.outcome == "step_cap"
    assert len(done.of(ModelCall)) == 20


def test_huge_bodies_are_refused_as_they_come(attack: Attack) -> None:
    done = attack("""
        host, _, path = BASE.removeprefix("http://").partition("/")
        def huge(head, piece):
            with socket.create_connection(("127.0.0.1", 8080), 20) as each:
                try:
                    line = f"POST /{path}/chat/completions HTTP/1.1\\r\\nHost: x\\r\\n{head}"
                    each.sendall(f"{line}\\r\\n\\r\\n".encode())
                    for _ in range(100):
                        each.sendall(piece)
                except OSError:
                    pass
                each.settimeout(20)
                try:
                    return each.recv(12).decode()
                except OSError:
                    return "closed"
        mebibyte = b"x" * (1 << 20)
        found["huge"] = [huge("Content-Length: 104857600", mebibyte)]
        found["huge"].append(huge("Transfer-Encoding: chunked", b"100000\\r\\n" + mebibyte + b"\\r\\n"))
        text = json.dumps({"messages": [{"role": "user", "content": "y" * (15 << 20)}]}).encode()
        found["large"] = sorted({send(b"[" + text)[0] for _ in range(8)})
    """)
    assert set(done.found["huge"]) <= {"HTTP/1.1 413", "closed"}
    assert done.found["large"] == [400]
    done.unharmed()


def test_garbage_and_connections_that_stay_open_hold_up_nobody(attack: Attack) -> None:
    done = attack("""
        half = b"POST / HTTP/1.1\\r\\nContent-Length: 9\\r\\n\\r\\nx"
        for data in (b"\\0" * 1000, b"GET\\r\\n\\r\\n", b"\\x16\\x03\\x01" * 99, half):
            with socket.create_connection(("127.0.0.1", 8080), 5) as each:
                each.sendall(data)
        held = [socket.create_connection(("127.0.0.1", 8080), 5) for _ in range(50)]
        [each.sendall(b"POST ") for each in held]
        found["beside"] = ask("after")
        try:
            held += [socket.create_connection(("127.0.0.1", 8080), 2) for _ in range(200)]
        except OSError:
            pass
        print(json.dumps({**found, "after": 200}), flush=True)
        os._exit(0)
    """)
    assert done.found["beside"] == 200
    done.unharmed()


def test_the_way_to_the_gateway_is_not_ended(attack: Attack) -> None:
    done = attack(
        """
        found["said"] = sh("kill -9 1 2 3; kill -9 -1 2>&1; pkill -9 -f server; fuser -k 8080/tcp; true")
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            listener.bind(("127.0.0.1", 8080))
            found["bound"] = True
        except OSError:
            found["bound"] = False
    """.replace("kill -9 -1 2>&1; ", "")
    )
    assert done.found["bound"] is False
    done.unharmed()


def test_hostile_text_is_kept_as_it_came(attack: Attack) -> None:
    done = attack("""
        text = b"\\\\u0000 \\\\ud800 \\xff \\\\u202e"
        message = b'{"role": "user", "content": "' + text + b'"}'
        found["odd"] = send(b'{"messages": [' + message + b'], "temperature": NaN}')[0]
    """)
    first, odd, last = done.of(ModelCall)
    assert done.trace.payloads[odd.input.add[0]] == {"role": "user", "content": "\0 \ud800 \udcff \u202e"}
    assert (first.error, last.error) == (None, None)
    assert done.found["after"] == 200
