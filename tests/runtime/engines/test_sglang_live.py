"""Two real SGLang servers, brought up by script/test-sglang, which prints what was seen of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harnesslab.core.canonical import JSON
from harnesslab.core.running.ports import EnginePort, FailureKind, ModelRequest
from harnesslab.runtime.engines.probes import probe
from harnesslab.runtime.engines.sglang import SGLangEngine, SGLangSettings
from tests.runtime.engines.conformance import CHECKS, LIVE_CHECKS, Subject
from tests.runtime.engines.loopback import Record, recording
from tests.runtime.engines.sglang_subjects import KEPT_FACTS, NAMES, RECORDED, subject_of

ROOT = Path(__file__).resolve().parents[3]
ADDRESSES = {
    "default": os.environ["HARNESSLAB_TEST_SGLANG"],
    "deterministic": os.environ["HARNESSLAB_TEST_SGLANG_DETERMINISTIC"],
}
STORY: list[JSON] = [{"role": "user", "content": "Tell me a story about a lighthouse."}]
pytestmark = [pytest.mark.serial, pytest.mark.timeout(400)]


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """Which server, and whether by chat or by the native endpoint."""
    return str(request.param)


@pytest.fixture(scope="module")
def subject(name: str) -> Iterator[Subject]:
    """The engine, its exchanges recorded where that was asked for."""
    address = ADDRESSES[name.split("-")[0]]
    if "HARNESSLAB_TEST_RECORD" not in os.environ:
        yield subject_of(name, address)
        return
    record = Record()
    with recording(address, record) as proxy:
        yield subject_of(name, proxy)
    _shorten(record)
    record.write(RECORDED / f"sglang-{name}.json", _clean)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
def test_it_conforms(subject: Subject, check: Callable[[Subject], None]) -> None:
    check(subject)


@pytest.mark.parametrize("check", LIVE_CHECKS, ids=lambda check: str(check.__name__))
def test_it_conforms_in_time(name: str, check: Callable[[Subject], None]) -> None:
    check(subject_of(name, ADDRESSES[name.split("-")[0]]))


def test_a_probe_tells_the_two_apart(name: str) -> None:
    found = probe(subject_of(name, ADDRESSES[name.split("-")[0]]).engine)
    saw(f"{name}: {'; '.join(found.sentences)}")
    assert found.seed_honoured is name.startswith("deterministic")
    assert found.varies_unseeded is name.startswith("default")
    assert found.token_ids
    assert found.prompt_token_ids
    assert found.logprobs
    assert found.streams


def saw(line: str) -> None:
    """Keep a line for the end of the script's run."""
    with Path(os.environ["HARNESSLAB_SGLANG_HOME"], "seen.txt").open("a") as file:
        file.write(f"{line}\n")


def engine_of(name: str, *, native: bool = False) -> EnginePort:
    """Return the engine of one server."""
    return SGLangEngine(ADDRESSES[name], "smollm2", SGLangSettings(native=native))


def tokens(engine: EnginePort, *, prompt: list[JSON] = STORY, number: int = 32) -> tuple[int, ...]:
    """Return the tokens of a greedy answer."""
    got = engine.ask(ModelRequest(prompt, {"temperature": 0, "max_tokens": number}), timeout=120)
    assert got.answer is not None, got.failure
    assert got.answer.token_ids is not None
    return got.answer.token_ids


@pytest.mark.parametrize("name_", ["default", "deterministic"])
def test_what_a_batch_does(name_: str) -> None:
    engine = engine_of(name_)
    alone = {tokens(engine) for _ in range(5)}
    with ThreadPoolExecutor(4) as pool:
        batch = [got for _ in range(3) for got in pool.map(lambda _: tokens(engine), range(4))]
    (reference,) = alone
    equal = sum(got == reference for got in batch)
    parted = _parted(reference, batch)
    saw(f"{name_}: alone 5 of 5 equal; in batches of 4, {equal} of {len(batch)} equal to alone; parted at {parted}")
    assert equal == (len(batch) if name_ == "deterministic" else 0)


@pytest.mark.parametrize("name_", ["default", "deterministic"])
def test_what_random_neighbours_do(name_: str) -> None:
    engine, stop = engine_of(name_), threading.Event()

    def neighbour(number: int) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            prompt: list[JSON] = [{"role": "user", "content": f"Say {number} things about the number {turn}."}]
            tokens(engine, prompt=prompt, number=5 + turn % 7)

    reference = tokens(engine)
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(neighbour, number) for number in (1, 2)]
        got = [tokens(engine) for _ in range(10)]
        stop.set()
        for each in running:
            each.result()
    kinds = Counter(got)
    saw(f"{name_}: under neighbours {len(kinds)} distinct answers of 10, {kinds[reference]} equal to alone")
    if name_ == "deterministic":
        assert kinds == {reference: 10}


def test_more_than_it_queues_is_told_as_overload() -> None:
    engine = engine_of("default")
    request = ModelRequest(STORY, {"max_tokens": 60, "ignore_eos": True})
    with ThreadPoolExecutor(20) as pool:
        got = list(pool.map(lambda _: engine.ask(request, timeout=120), range(20)))
    kinds = Counter(exchange.failure.kind if exchange.failure else None for exchange in got)
    saw(f"default: 20 requests at once on 8 running and 4 queued: {dict(kinds)}")
    assert set(kinds) == {None, FailureKind.OVERLOADED}
    assert kinds[FailureKind.OVERLOADED] >= 1


@pytest.mark.parametrize("native", [False, True])
def test_a_stop_ends_the_request_at_the_server(native: bool) -> None:
    engine = engine_of("default", native=native)
    request = ModelRequest(STORY, {"max_tokens": 1500, "ignore_eos": True}, stream=True)
    got = engine.ask(request, timeout=60, on_text=lambda text: not text)
    assert got.failure is not None
    assert got.failure.kind is FailureKind.STOPPED
    for _ in range(50):
        if _running() == 0:
            break
        threading.Event().wait(0.1)
    assert _running() == 0


def test_a_restart_in_the_middle_of_a_rollout_is_seen() -> None:
    address = ADDRESSES["default"]
    engine = SGLangEngine(address, "smollm2")
    before, conditions = engine.startup(), engine.conditions()
    tokens(engine, number=4)
    _serve("stop", "default")
    down = engine.ask(ModelRequest(STORY, {"max_tokens": 4}), timeout=10)
    assert down.failure is not None
    assert down.failure.kind is FailureKind.UNREACHABLE
    assert not engine.health().up
    _serve("start", "default", str(urlsplit(address).port))
    tokens(engine, number=4)
    after = engine.startup()
    saw(f"default: restarted; random_seed {before['random_seed']} became {after['random_seed']}")
    assert after["random_seed"] != before["random_seed"]
    assert after["startup_time"] != before["startup_time"]
    assert engine.conditions() == conditions


def _serve(*arguments: str) -> None:
    subprocess.run([ROOT / "script" / "sglang" / "serve", *arguments], check=True)


def _running() -> int:
    from harnesslab.runtime.engines.transport import Transport

    said = Transport(ADDRESSES["default"]).send("GET", "/metrics", timeout=10).body.decode()
    return int(
        sum(float(value) for value in re.findall(r"^sglang:num_running_reqs\{[^}]*\} (\S+)", said, re.MULTILINE))
    )


def _parted(reference: tuple[int, ...], others: list[tuple[int, ...]]) -> dict[int, int]:
    """Count at which token the others part from the reference."""
    places: Counter[int] = Counter()
    for other in others:
        pairs = enumerate(zip(reference, other, strict=False))
        place = next((number for number, (a, b) in pairs if a != b), None)
        if place is not None:
            places[place] += 1
    return dict(places)


def _shorten(record: Record) -> None:
    """Keep of the server's arguments those that are read."""
    for exchange in record.exchanges:
        if "/server_info" in exchange["request"]:
            document = json.loads(exchange["body"])
            exchange["body"] = json.dumps({key: document[key] for key in KEPT_FACTS if key in document})


def _clean(text: str) -> str:
    home = os.environ["HARNESSLAB_SGLANG_HOME"]
    text = text.replace(home, "/models").replace("/models/venv/lib/python3", "/venv/lib/python3")
    return re.sub(r"(127\.0\.0\.1:|--port )\d+", r"\g<1>30000", text)
