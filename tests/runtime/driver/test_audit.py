"""Certification, for real: recorded commands and verification run again in a fresh sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from harnesslab.core.canonical import Digest
from harnesslab.core.measuring.certification import Certificate, CertificateVerdict
from harnesslab.core.running.ports import Place, Sandboxes, SandboxRefused
from harnesslab.core.running.recipe import Recipe
from harnesslab.core.trace.events import ToolCall
from harnesslab.core.trace.trace import Trace
from harnesslab.runtime.driver.audit import AuditFailed, audit
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap
from tests.runtime.driver.rig import Rig, case, model

IDENTITY = Digest("1" * 64)


def certified(
    folder: Path, *commands: str, sandboxes: Sandboxes | None = None, pins: tuple[str, ...] | None = None, **given: str
) -> Certificate:
    """Record a rollout of some commands, and audit it."""
    tests = {"done": given.get("test", "true")}
    rig = Rig(folder, case=case(files={"a.txt": "one\n"}, tests=tests, command=2.0), pins=pins)
    with model(*commands, "submit") as served:
        done = rig.go(served)
    return audit(rig.recipe, done.trace, IDENTITY, lambda _: sandboxes or Bubblewrap(), lambda: False)


def test_commands_that_give_the_same_again_certify_the_environment(tmp_path: Path) -> None:
    found = certified(tmp_path, "cp a.txt b.txt", "cat b.txt", test="cmp a.txt b.txt")
    assert (found.verdict, found.commands, found.fork) == (CertificateVerdict.DETERMINISTIC, 2, None)
    assert Certificate.from_json(found.to_json()) == found


def test_a_command_that_gives_something_else_forks_and_is_named(tmp_path: Path) -> None:
    found = certified(tmp_path, "cat a.txt", "cat /proc/sys/kernel/random/uuid | tr -d -", pins=())
    assert found.verdict is CertificateVerdict.FORKED
    assert found.fork is not None
    assert (found.fork.place, found.fork.what) == (1, "output")
    assert found.fork.recorded != found.fork.live


def test_what_a_scrub_rule_removes_is_no_fork(tmp_path: Path) -> None:
    found = certified(tmp_path, "date '+%Y-%m-%d %H:%M:%S.%N'", pins=())
    assert found.verdict is CertificateVerdict.DETERMINISTIC


def test_a_verdict_that_changes_forks(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(tests={"done": "[ -e marker ]", "other": "true"}))
    with model("touch marker", "submit") as served:
        done = rig.go(served)
    stricter = msgspec.structs.replace(rig.recipe, case=case(tests={"done": "[ ! -e marker ]", "other": "true"}))
    fork = audit(stricter, done.trace, IDENTITY, lambda _: Bubblewrap(), lambda: False).fork
    assert fork is not None
    assert (fork.place, fork.command, fork.what, fork.recorded, fork.live) == (
        1,
        "verify: done",
        "verdict",
        "passed",
        "failed",
    )


def test_a_chain_that_timed_out_can_not_be_run_again(tmp_path: Path) -> None:
    found = certified(tmp_path, "sleep 20")
    assert found.verdict is CertificateVerdict.NO_CHAIN
    assert "timed out" in found.why


def test_the_digest_is_of_the_actions_and_not_of_what_they_gave(tmp_path: Path) -> None:
    first = certified(tmp_path / "1", "echo $RANDOM", pins=())
    again = certified(tmp_path / "2", "echo $RANDOM", pins=())
    other = certified(tmp_path / "3", "echo x")
    assert first.chain_digest == again.chain_digest != other.chain_digest
    assert first.holds_for(again.chain_digest, IDENTITY)
    assert not first.holds_for(other.chain_digest, IDENTITY)
    assert not first.holds_for(again.chain_digest, Digest("2" * 64))


class Refusing(Bubblewrap):
    """Makes no sandbox."""

    def open(self, place: Place) -> NoReturn:
        """Refuse."""
        raise SandboxRefused("the machine is out of memory")


def test_an_audit_that_fails_itself_raises_and_excludes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SandboxRefused):
        certified(tmp_path, "cat a.txt", sandboxes=Refusing())


def test_a_stopped_audit_says_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(tests={"done": "true"}))
    with model("ls", "submit") as served:
        done = rig.go(served)
    with pytest.raises(AuditFailed):
        audit(rig.recipe, done.trace, IDENTITY, lambda _: Bubblewrap(), lambda: True)


def test_a_recording_without_a_recipe_has_no_chain(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    with model("ls", "submit") as served:
        done = rig.go(served)

    def none(_: Recipe) -> Sandboxes:
        raise AssertionError("nothing is opened")

    assert audit(None, done.trace, IDENTITY, none, lambda: False).verdict is CertificateVerdict.NO_CHAIN


def test_a_call_that_ran_nothing_is_no_part_of_the_chain(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(files={"a.txt": "one\n"}, tests={"done": "true"}))
    with model("cat a.txt", "submit") as served:
        done = rig.go(served)
    call = next(event for event in done.trace.events if isinstance(event, ToolCall))
    refused = msgspec.structs.replace(call, arguments={"command": 1}, result=None, has_result=False, exit_code=None)
    refused = msgspec.structs.replace(refused, error="run needs a command that is text", extra={})
    unknown = msgspec.structs.replace(refused, name="search", error="there is no tool search; workers run run")
    trace = Trace((*done.trace.events, refused, unknown), done.trace.payloads, done.trace.digests)
    found = audit(rig.recipe, trace, IDENTITY, lambda _: Bubblewrap(), lambda: False)
    assert (found.verdict, found.commands) == (CertificateVerdict.DETERMINISTIC, 1)
