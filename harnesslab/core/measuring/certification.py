"""Certification: whether a case's environment repeats, told by running its recorded commands and verification again.

It certifies the environment, nothing else: not the model, not the harness. After harness-training's determinism audit
(github.com/workofart/harness-training): a case that forks, or whose chain of commands can't be run again, is excluded
before a candidate is judged; a certificate is inherited only on equal identity and chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from harnesslab.core.canonical import JSON, Digest, digest
from harnesslab.core.contracts import scrub
from harnesslab.core.documents import read
from harnesslab.core.running.recipe import RUN, HarnessKind, Recipe
from harnesslab.core.running.rerun import unsafe_fork
from harnesslab.core.trace.events import TestResult, ToolCall, Verification
from harnesslab.core.trace.trace import Trace

SHOWN = 1000
"""Characters of a result that a fork shows."""


class CertificateVerdict(StrEnum):
    """What an audit found."""

    DETERMINISTIC = "deterministic"
    FORKED = "forked"
    NO_CHAIN = "no_chain"


class Fork(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where an environment did something else when it was run again."""

    place: int
    """Zero-based position in the chain."""
    command: str
    what: str
    """What differs: output, exit code, or a test of the verifier."""
    recorded: str
    live: str


class Certificate(msgspec.Struct, frozen=True, omit_defaults=True):
    """The audit of one case."""

    verdict: CertificateVerdict
    chain_digest: Digest
    identity: Digest = Digest("")
    """Measurement identity of the rollout whose chain it is."""
    why: str = ""
    fork: Fork | None = None
    commands: int = 0
    inherited: str = ""
    """The experiment it was inherited from."""

    def to_json(self) -> dict[str, JSON]:
        """Return the certificate as JSON."""
        built: dict[str, JSON] = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, document: JSON) -> Certificate:
        """Read a certificate that `to_json` wrote; raises `InvalidValue`."""
        return read(document, cls, "certificate")

    def holds_for(self, chain: Digest, identity: Digest) -> bool:
        """Say whether it can be inherited: a found fork too, since the same chain forks again."""
        return bool(self.identity) and (self.chain_digest, self.identity) == (chain, identity)


@dataclass(frozen=True, slots=True)
class Chain:
    """What a rollout did to its environment, in order."""

    calls: Sequence[ToolCall]
    tests: Sequence[TestResult]
    """The verifier's; empty where the rollout was not judged."""
    why_not: str = ""
    """Why it can't be run again; empty where it can."""

    @property
    def digest(self) -> Digest:
        """Digest of the actions, without what they gave."""
        actions: list[JSON] = [{"kind": "run", "command": command_of(call)} for call in self.calls]
        return digest([*actions, *([{"kind": "verify"}] if self.tests else [])])


def chain_of(trace: Trace, recipe: Recipe | None) -> Chain:
    """Read a rollout's chain: what ran; a call that was answered with an error alone touched nothing."""
    calls = [event for event in trace.events if isinstance(event, ToolCall) and _ran(event)]
    verdicts = [event for event in trace.events if isinstance(event, Verification)]
    tests = verdicts[-1].tests if verdicts else ()
    return Chain(calls, tests, _why_not(trace, calls, tests, recipe))


def _why_not(trace: Trace, calls: Sequence[ToolCall], tests: Sequence[TestResult], recipe: Recipe | None) -> str:
    if recipe is None:
        return "the recording has no recipe, so that nothing of it can be run again"
    if recipe.harness.kind is HarnessKind.COMMAND:
        return "a command harness runs its own tools, so that there is no chain of commands"
    if other := next((call.name for call in calls if call.name != RUN), ""):
        return f"it called {other}, which workers don't run"
    unsafe = unsafe_fork(trace)
    if unsafe is not None:
        return unsafe.why
    if any(test.passed is None for test in tests):
        return "its verification timed out, and where it stops the next time is chance"
    return ""


def _ran(call: ToolCall) -> bool:
    return call.has_result or call.error is None


def command_of(call: ToolCall) -> str:
    """Return the command that a call ran."""
    command = call.arguments.get("command") if isinstance(call.arguments, Mapping) else None
    return command if isinstance(command, str) else ""


def call_fork(place: int, recorded: ToolCall, live: ToolCall) -> Fork | None:
    """Compare a command's result with the recorded one, under the scrub rules; None where they are equal."""
    then, now = _text(recorded), _text(live)
    if scrub.scrub(then, scrub.newest()) != scrub.scrub(now, scrub.newest()):
        what = "output"
    elif (recorded.exit_code, recorded.error) != (live.exit_code, live.error):
        what, then, now = "exit code", _end(recorded), _end(live)
    else:
        return None
    return Fork(place, command_of(recorded), what, then[:SHOWN], now[:SHOWN])


def verification_fork(place: int, recorded: Sequence[TestResult], live: Sequence[TestResult]) -> Fork | None:
    """Compare the verdicts of the verifier's tests; what they printed doesn't count."""
    then, now = ({test.name: test.passed for test in tests} for tests in (recorded, live))
    changed = next((name for name in sorted({*then, *now}) if then.get(name) != now.get(name)), None)
    if changed is None:
        return None
    return Fork(place, f"verify: {changed}", "verdict", _verdict(then.get(changed)), _verdict(now.get(changed)))


def _text(call: ToolCall) -> str:
    return call.result if isinstance(call.result, str) else ""


def _end(call: ToolCall) -> str:
    return call.error or f"exit {call.exit_code}"


def _verdict(passed: bool | None) -> str:
    return {True: "passed", False: "failed", None: "not judged"}[passed]
