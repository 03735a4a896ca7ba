"""What a worker needs from outside: an engine that answers, and a sandbox that runs commands.

A port makes one attempt and says truly what happened; whether to try again is decided, and recorded, by whoever
drives the rollout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import BinaryIO, Protocol

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Condition
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.trace.events import ToolRequest, Usage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request at the model boundary, in the OpenAI chat dialect."""

    messages: Sequence[JSON]
    settings: Mapping[str, JSON] = field(default_factory=dict)
    """Sampling and stop rules by their OpenAI names: temperature, top_p, top_k, max_tokens, stop, seed (an integer),
    response_format, grammar, tool_choice, reasoning_effort. A seed of more bits than an engine takes is sent as a
    remainder, which the exchange's settings show."""
    tools: JSON = None
    """Tool schemas; None for none."""
    stream: bool = False


class FailureKind(StrEnum):
    """Why an engine gave no answer."""

    UNREACHABLE = "unreachable"
    OVERLOADED = "overloaded"
    CONTEXT_EXCEEDED = "context exceeded"
    TOOL_CALL_REJECTED = "tool call rejected"
    MALFORMED = "malformed answer"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    """The caller asked to stop while the answer was coming."""
    HUNG_UP = "client hung up"
    """The agent's own client closed its connection before the answer was there."""
    REFUSED = "request refused"
    SERVER_ERROR = "server error"


RETRIED = frozenset({FailureKind.UNREACHABLE, FailureKind.OVERLOADED, FailureKind.MALFORMED, FailureKind.SERVER_ERROR})
"""Failures of the infrastructure: another attempt may succeed, and it is never a sample of its own."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt gave no answer, in one sentence, with the facts the engine stated (such as token counts)."""

    kind: FailureKind
    sentence: str
    facts: Mapping[str, JSON] = field(default_factory=dict)
    retry_after: float | None = None
    """Seconds after which the engine said to try again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered; what the engine did not state is None, never a guess.

    Its fields are `ModelCall`'s of the same names: a call is recorded as it was answered.
    """

    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: tuple[ToolRequest, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    response_id: str | None = None
    fingerprint: str | None = None
    prompt: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    """Natural logarithm of the probability of each completion token."""
    alternatives: tuple[JSON, ...] | None = None
    """Per token, `[[token text, log-probability], …]` of the most probable tokens."""
    seed_honoured: bool | None = None
    served_from_cache: bool | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One attempt at the model boundary; exactly one of `answer` and `failure` is there."""

    model: str
    settings: Mapping[str, JSON]
    """Settings as sent, 64-bit integers as decimal strings."""
    raw_request: bytes
    raw_response: bytes
    """The body as received, for a stream all of its lines; what had come before a failure."""
    latency: float
    """Seconds from sending to the end of the answer."""
    answer: Answer | None = None
    failure: Failure | None = None
    first_token: float | None = None
    """Seconds until the first token, where the answer was streamed."""
    waited: float = 0.0
    """Seconds the request waited for its turn before it was sent."""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether an engine answers, and a sentence for people."""

    up: bool
    sentence: str


class EnginePort(Protocol):
    """A model server, asked by one attempt at a time; see `runtime/engines` for those there are."""

    def ask(self, request: ModelRequest, *, timeout: float, on_text: Callable[[str], bool] | None = None) -> Exchange:
        """Make one attempt; never raises for what the server does. `on_text` gets streamed text, an empty one for
        each piece that adds none, and stops it by answering False."""

    def conditions(self) -> Mapping[str, Condition]:
        """Ask the server for its facts as manifest conditions, `model.*`, `engine.*`, `hardware.*`; raises
        `EngineDown`."""

    def startup(self) -> Mapping[str, JSON]:
        """Return what differs between two starts of one configuration, so that a restart in the middle of a rollout
        is seen; empty where the server tells nothing of it. Raises `EngineDown`."""

    def health(self) -> Health:
        """Say whether it answers."""

    def close(self) -> None:
        """Close the connections to the server."""


class EngineDown(HarnessLabError):
    """An engine can't be reached, so that nothing can be said of it."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A source of nondeterminism, and whether it was held fixed."""

    name: str
    value: str
    """What it was fixed to; empty where it is missing."""
    missing: str = ""
    """Why it could not be held, empty where it was."""


@dataclass(frozen=True, slots=True)
class Execution:
    """The end of a command that ran in a sandbox, and what it put out."""

    output: bytes
    """Standard output and error together as they came, cut to the limit with a marker."""
    size: int
    """Bytes of the whole output."""
    digest: str
    """SHA-256 of the whole output."""
    exit_code: int | None
    """None where it was ended from outside."""
    latency: float
    timed_out: bool = False
    left_running: bool = False
    """Whether processes it started outlived it; they were ended."""
    error: str | None = None
    """Why it was ended from outside (a limit, a lost sandbox), in one sentence."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a sandbox may use."""

    memory: int = 512 * 1024 * 1024
    """Bytes of resident memory, all processes together."""
    disk: int = 256 * 1024 * 1024
    """Bytes of the work folder, /tmp and /dev/shm together."""
    file: int = 128 * 1024 * 1024
    """Bytes of one file."""
    files: int = 200_000
    """Files and folders, since an empty one takes memory and no disk."""
    processes: int = 128
    cpu: int = 600
    """Seconds of processor time of one process."""
    output: int = 64 * 1024
    """Bytes of output kept of one command."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a sandbox is opened with."""

    limits: Limits = Limits()
    readable: Mapping[str, str] = field(default_factory=dict)
    """Read-only files and folders: path inside to path on the host."""
    sockets: Mapping[int, str] = field(default_factory=dict)
    """Loopback TCP port inside to unix socket on the host that it is forwarded to."""
    environ: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    """Seed of what the sandbox's random pins give."""
    clock: str = "2026-01-01 00:00:00"
    """Where the pinned clock starts, UTC."""
    pins: frozenset[str] | None = None
    """Pins to hold; None for all of them."""


class Child(Protocol):
    """A program that runs in a sandbox of its own and talks over its standard streams."""

    stdin: BinaryIO
    stdout: BinaryIO

    def kill(self) -> None:
        """End it and all it started; may be called twice."""

    def wait(self, timeout: float) -> int | None:
        """Return its exit code, or None where it still runs after `timeout` seconds."""

    def complaints(self) -> str:
        """Return the last 8 KiB of its standard error."""


class Sandbox(Protocol):
    """A place where commands run that reach nothing else; files stay between commands until it is closed."""

    pins: Sequence[Pin]

    def conditions(self) -> Mapping[str, Condition]:
        """Return manifest conditions, `environment.*` and `hardware.cpu`."""

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        environ: Mapping[str, str] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> Execution:
        """Run a shell command, or a program with arguments, in the work folder. `stopped` is asked about twice a
        second and ends it by answering True."""

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files into the work folder by relative path, with fixed times."""

    def files(self) -> Mapping[str, bytes]:
        """Read the work folder's regular files by relative path, up to its limits."""

    def state(self) -> str:
        """Return a digest of the work folder: names, kinds, modes and contents, never times or inodes."""

    def close(self) -> None:
        """End everything inside and remove it; may be called twice."""


class Sandboxes(Protocol):
    """A way to make sandboxes on this machine."""

    def unavailable(self) -> str:
        """Say why no sandbox can be made here, or nothing."""

    def open(self, place: Place) -> Sandbox:
        """Open a sandbox for commands; raises `SandboxRefused`."""

    def spawn(self, place: Place, program: Sequence[str]) -> Child:
        """Start one program in a sandbox of its own; raises `SandboxRefused`."""


class SandboxRefused(HarnessLabError):
    """A sandbox can't be made, or was lost."""
