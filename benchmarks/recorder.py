"""What recording costs: the driver and the gateway beside asking the embedded engine directly, and serving a record.

    .venv/bin/python benchmarks/recorder.py [--calls 40] [--steps 1000] [--profile]

Each round asks directly, through the loop's boundary and through the gateway, one after the other, so that other work
on the machine falls on all; a cost is what a call took beyond the engine's own time. The database is SQLite in a new
folder.
"""

from __future__ import annotations

import argparse
import cProfile
import http.client
import json
import os
import pstats
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
FOLDER = tempfile.TemporaryDirectory()
HOME = Path(FOLDER.name)
os.environ |= {"HARNESSLAB_HOME": str(HOME), "DJANGO_SETTINGS_MODULE": "harnesslab.settings"}

import django  # noqa: E402

django.setup()

from django.db import connections  # noqa: E402

from harnesslab.actions.engines import registration as engines  # noqa: E402
from harnesslab.actions.engines import slots  # noqa: E402
from harnesslab.actions.engines.guarded import GuardedEngine  # noqa: E402
from harnesslab.actions.rollouts.recorder import Recorder, RolloutEnding  # noqa: E402
from harnesslab.actions.tables import migrate  # noqa: E402
from harnesslab.core.conditions.manifest import Manifest  # noqa: E402
from harnesslab.core.running.cases import Budgets, CaseDefinition  # noqa: E402
from harnesslab.core.running.ports import EnginePort, Exchange, ModelRequest  # noqa: E402
from harnesslab.core.running.recipe import HarnessSource, Recipe, SideEffects  # noqa: E402
from harnesslab.core.running.record import Record  # noqa: E402
from harnesslab.core.running.rerun import Mode, RerunPlan  # noqa: E402
from harnesslab.core.running.rollout import Outcome, Recording, Source  # noqa: E402
from harnesslab.core.trace.trace import Trace  # noqa: E402
from harnesslab.requests.engines import EngineRequest  # noqa: E402
from harnesslab.runtime.driver.agent import AgentBoundary  # noqa: E402
from harnesslab.runtime.driver.episode import DrivenEpisode  # noqa: E402
from harnesslab.runtime.driver.inbox import Inbox  # noqa: E402
from harnesslab.runtime.driver.model import call_model  # noqa: E402
from harnesslab.runtime.driver.outside import Nowhere  # noqa: E402
from harnesslab.runtime.driver.tools import call_tool  # noqa: E402
from harnesslab.runtime.engines.catalogue import engine as make_engine  # noqa: E402
from harnesslab.runtime.engines.hosting import hosted  # noqa: E402
from harnesslab.runtime.gateway.server import served  # noqa: E402

SETTINGS = {"temperature": 0, "max_tokens": 24}
RECIPE = Recipe(
    HarnessSource("bench", ""),
    CaseDefinition("bench", "", budgets=Budgets(steps=10**6, wall=10**6)),
    "e",
    tools={"run": SideEffects.SANDBOXED},
)


class Timed:
    """An engine that remembers how long it took."""

    def __init__(self, engine: EnginePort) -> None:
        self._engine = engine
        self.took = 0.0

    def ask(self, request: ModelRequest, **options: Any) -> Exchange:
        """Ask, and keep the time."""
        began = time.perf_counter()
        exchange = self._engine.ask(request, **options)
        self.took = time.perf_counter() - began
        return exchange

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def recorder() -> Recorder:
    """Open a rollout."""
    manifest = Manifest.from_conditions({}, unknown="a benchmark")
    return Recorder(Recording(manifest, Trace((), (), ()), Outcome.RUNNING, "bench", Source("b", manifest.digest, "b")))


def episode(engine: Any, plan: RerunPlan | None = None, record: Record | None = None) -> DrivenEpisode:
    """Begin an episode that is recorded in the database."""
    return DrivenEpisode(RECIPE, recorder(), engine, Nowhere(), lambda: False, plan, record)


@contextmanager
def gateway(engine: Any) -> Iterator[Callable[[list[Any]], float]]:
    """Have a gateway, and a function that asks it and returns the seconds."""
    inbox, ended = Inbox(lambda: ["m"]), threading.Event()

    def drive() -> None:
        begun = episode(engine)
        boundary = AgentBoundary(begun, inbox, connections.close_all, governed=False)
        while not ended.is_set():
            boundary.turn(0.05)
        boundary.close()
        begun.writer.finish(RolloutEnding(Outcome.UNKNOWN))  # type: ignore[attr-defined]
        connections.close_all()

    driver = threading.Thread(target=drive)
    with served(inbox) as opened:
        driver.start()
        client = http.client.HTTPConnection("127.0.0.1", opened.port)

        def ask(messages: list[Any]) -> float:
            body = json.dumps({"messages": messages, **SETTINGS}).encode()
            began = time.perf_counter()
            client.request("POST", f"{opened.path}/v1/chat/completions", body)
            client.getresponse().read()
            return time.perf_counter() - began

        try:
            yield ask
        finally:
            client.close()
            ended.set()
            driver.join()


def overhead(calls: int) -> None:
    """Ask in turns and print what each way adds."""
    engines.register(EngineRequest(name="e", kind="embedded"))
    row = engines.get_engine(1)
    timed = Timed(make_engine("embedded", "", "", {}, HOME))
    guarded = GuardedEngine(timed, slots.slots(), row.pk, 1, "m", lambda: False)
    plain, ticketed = episode(timed), episode(guarded)
    wholes: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}

    def note(name: str, act: Callable[[], Any]) -> None:
        began = time.perf_counter()
        act()
        whole = time.perf_counter() - began
        wholes.setdefault(name, []).append(whole * 1000)
        costs.setdefault(name, []).append((whole - timed.took) * 1000)

    def looped(begun: DrivenEpisode, messages: list[Any]) -> None:
        call_model(begun, messages, None, SETTINGS, "")
        begun.release()
        begun.writer.flush()

    messages: list[Any] = [{"role": "user", "content": "Tell me a story about a lighthouse."}]
    with gateway(timed) as ask, gateway(guarded) as ask_guarded:
        timed.ask(ModelRequest(messages, SETTINGS), timeout=60)
        for number in range(calls):
            asked = [*messages, *({"role": "user", "content": f"and then {n}?"} for n in range(number % 20))]
            request = ModelRequest(asked, SETTINGS)
            note("direct", lambda request=request: timed.ask(request, timeout=60))
            note("loop", lambda asked=asked: looped(plain, asked))
            note("gateway", lambda asked=asked: ask(asked))
            note("loop, ticket", lambda asked=asked: looped(ticketed, asked))
            note("gateway, ticket", lambda asked=asked: ask_guarded(asked))
    print(f"{'':18}{'whole p50':>12}{'added p50':>12}{'added p95':>12}  ms, {calls} calls each")
    for name, values in costs.items():
        late = sorted(values)[int(len(values) * 0.95)]
        print(f"{name:18}{statistics.median(wholes[name]):12.1f}{statistics.median(values):12.2f}{late:12.2f}")
    direct = sum(wholes["direct"])
    for name in ("loop", "gateway", "loop, ticket", "gateway, ticket"):
        share = 100 * (sum(wholes[name]) / direct - 1)
        inner = 100 * sum(costs[name]) / sum(wholes[name])
        print(f"{name}: {share:+.1f} % of the direct calls' whole time; {inner:.1f} % of its time is not the engine's")


class Constant:
    """An engine that answers at once, to make a record of."""

    def ask(self, request: ModelRequest, **_: Any) -> Exchange:
        """Answer with the number of messages."""
        from harnesslab.core.running.ports import Answer

        answer = Answer(text=f"echo {len(request.messages)}", finish_reason="stop")
        return Exchange("m", {}, json.dumps(list(request.messages)).encode(), b"{}", 0.0, answer)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def steps_of(begun: DrivenEpisode, steps: int, window: int) -> float:
    """Take steps of one model and one tool call and return the seconds; the transcript keeps its last messages."""
    messages: list[Any] = [{"role": "user", "content": "go"}]
    began = time.perf_counter()
    for number in range(steps):
        said = call_model(begun, messages, None, {}, "")["text"]
        begun.store()
        output = call_tool(begun, "run", {"command": said}, f"c{number}", None)["output"]
        begun.store()
        added = [{"role": "assistant", "content": said}, {"role": "user", "content": output}]
        messages = [*messages[: window - 2], *added] if len(messages) >= window else [*messages, *added]
    return time.perf_counter() - began


def serving(steps: int, window: int, *, profile: bool) -> None:
    """Print how many steps a second a recorded rerun serves, harness process left out."""
    from harnesslab.core.running import ports

    class Echo(Nowhere):
        def run(self, command: object, **_: object) -> ports.Execution:
            return ports.Execution(b"ok\n", 3, "", 0, 0.0)

    live = episode(Constant())
    live.sandbox = Echo()
    steps_of(live, steps, window)
    live.release()
    trace = live.writer.builder.trace()
    live.writer.finish(RolloutEnding(Outcome.UNKNOWN))  # type: ignore[attr-defined]
    began = time.perf_counter()
    record = Record(trace)
    indexed = time.perf_counter() - began
    again = episode(Constant(), RerunPlan(mode=Mode.RECORDED), record)
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    took = steps_of(again, steps, window)
    profiler.disable()
    began = time.perf_counter()
    again.release()
    again.writer.finish(RolloutEnding(Outcome.UNKNOWN))  # type: ignore[attr-defined]
    packed = time.perf_counter() - began
    assert again.counts.served == 2 * steps
    print(
        f"recorded rerun, {steps} steps, transcript of up to {window} messages: "
        f"{steps / (indexed + took + packed):.0f} steps/s, of which the last write and packing take {packed:.2f} s"
    )
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(18)


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    migrate()
    if options.calls:
        with hosted(HOME):
            overhead(options.calls)
    for window in (20, 200):
        serving(options.steps, window, profile=options.profile)


if __name__ == "__main__":
    main()
