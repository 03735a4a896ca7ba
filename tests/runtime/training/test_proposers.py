"""Proposers: patches in order, or a real program in a worktree with memo and evidence."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from harnesslab.core.errors import InvalidValue
from harnesslab.core.training.training import Proposer, ProposerKind
from harnesslab.runtime.training.proposers import Declined, Occasion, Proposal, proposer
from harnesslab.runtime.training.repository import Repository
from tests.runtime.training.repositories import make_repository, patch_of, run_git


def occasion(repository: Repository, *used: str) -> Occasion:
    return Occasion(repository.head(), "# Learning memo\n", {"baseline.json": b'{"solved": 1}'}, used)


def asked(repository: Repository, given: Proposer, *used: str) -> Proposal | Declined:
    return proposer(given).propose(repository, occasion(repository, *used), lambda: False)


def command(code: str, timeout: float = 60.0) -> Proposer:
    return Proposer(
        ProposerKind.COMMAND, command=(sys.executable, "-c", code), name="a model", effort="high", timeout=timeout
    )


def test_patches_are_taken_in_order_until_the_queue_is_used_up(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    folder = tmp_path / "patches"
    folder.mkdir()
    (folder / "02-b.patch").write_bytes(patch_of(repository, harness__py="ONE = 6\n"))
    (folder / "01-a.patch").write_bytes(
        b"Mechanism: five\nFires: guard, other\n\n" + patch_of(repository, harness__py="ONE = 5\n")
    )
    queue = Proposer(ProposerKind.PATCHES, folder=str(folder))
    first = asked(repository, queue)
    assert isinstance(first, Proposal)
    assert (first.mechanism, first.changed, first.facts["patch"]) == ("five", ("guard", "other"), "01-a.patch")
    second = asked(repository, queue, "01-a.patch")
    assert isinstance(second, Proposal)
    assert (second.mechanism, second.changed) == ("02-b", None)
    assert asked(repository, queue, "01-a.patch", "02-b.patch") == Declined("the patch queue is used up", over=True)


def test_a_patch_that_does_not_apply_is_declined_with_its_name(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    folder = tmp_path / "patches"
    folder.mkdir()
    (folder / "1.patch").write_text("--- a/harness.py\n+++ b/harness.py\n@@ -1 +1 @@\n-NO SUCH LINE\n+X\n")
    found = asked(repository, Proposer(ProposerKind.PATCHES, folder=str(folder)))
    assert isinstance(found, Declined)
    assert "does not apply" in found.why
    assert found.facts == {"patch": "1.patch"}
    assert not found.over


CHANGES = """
import json, os, pathlib
pathlib.Path("harness.py").write_text("ONE = 7\\n")
memo = pathlib.Path(os.environ["HARNESSLAB_MEMO"])
memo.write_text(memo.read_text() + "tried seven\\n")
evidence = json.loads(pathlib.Path(os.environ["HARNESSLAB_EVIDENCE"], "baseline.json").read_text())
said = {"mechanism": f"seven after {evidence['solved']} solved", "changes": ["guard"], "cost": 0.25}
pathlib.Path(os.environ["HARNESSLAB_PROPOSAL"]).write_text(json.dumps(said))
"""


def test_a_program_changes_a_worktree_and_says_what_it_did(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    found = asked(repository, command(CHANGES))
    assert isinstance(found, Proposal)
    assert (found.mechanism, found.changed) == ("seven after 1 solved", ("guard",))
    assert found.memo == "# Learning memo\ntried seven\n"
    assert (found.facts["model"], found.facts["effort"], found.facts["cost"]) == ("a model", "high", 0.25)
    assert run_git(repository.place, "show", f"{found.candidate.commit}:harness.py") == "ONE = 7"
    assert run_git(repository.place, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("pass", "changes nothing"),
        ("import sys; print('no key'); sys.exit(3)", "it ended with 3 (no key)"),
        ("open('README', 'w').write('x')", "outside what a candidate may change"),
    ],
)
def test_a_program_without_a_change_is_declined(tmp_path: Path, code: str, says: str) -> None:
    found = asked(make_repository(tmp_path / "r"), command(code))
    assert isinstance(found, Declined)
    assert says in found.why


def test_a_program_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    marker = tmp_path / "late"
    code = f"import subprocess, time; subprocess.Popen(['sh', '-c', 'sleep 2; touch {marker}']); time.sleep(30)"
    began = time.monotonic()
    found = asked(make_repository(tmp_path / "r"), command(code, timeout=0.6))
    assert isinstance(found, Declined)
    assert "took too long" in found.why
    assert time.monotonic() - began < 10
    time.sleep(max(0.0, 2.5 - (time.monotonic() - began)))
    assert not marker.exists()


def test_a_program_that_is_not_there_is_declined(tmp_path: Path) -> None:
    found = asked(make_repository(tmp_path / "r"), Proposer(ProposerKind.COMMAND, command=("no-such-program",)))
    assert isinstance(found, Declined)
    assert "can't be started" in found.why


def test_a_proposer_that_can_not_be_asked_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no such folder"):
        proposer(Proposer(ProposerKind.PATCHES, folder="/nowhere"))
    with pytest.raises(InvalidValue, match="needs a command"):
        proposer(Proposer(ProposerKind.COMMAND))


def test_a_program_gets_its_users_environment_without_what_the_lab_is_configured_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "HARNESSLAB_HOME", "DJANGO_SETTINGS_MODULE", "GIT_DIR", "AGENT_KEY"):
        monkeypatch.setenv(name, "secret")
    code = "import os; open('harness.py', 'w').write(' '.join(k for k, v in os.environ.items() if v == 'secret'))"
    repository = make_repository(tmp_path / "r")
    found = asked(repository, command(code))
    assert isinstance(found, Proposal)
    monkeypatch.delenv("GIT_DIR")
    assert run_git(repository.place, "show", f"{found.candidate.commit}:harness.py") == "AGENT_KEY"


@pytest.mark.parametrize("said", ['"[" * 100_000', "'{\"a\":' * 100 + '1' + '}' * 100", "'[1]'", "'no json'"])
def test_what_a_program_says_of_itself_may_be_anything(tmp_path: Path, said: str) -> None:
    code = f"import os; open(os.environ['HARNESSLAB_PROPOSAL'], 'w').write({said}); open('harness.py', 'w').write('x')"
    found = asked(make_repository(tmp_path / "r"), command(code))
    assert isinstance(found, Proposal)
    assert "unreadable" in found.facts


def test_a_memo_with_half_a_character_is_laid_out(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    given = Occasion(repository.head(), "half \ud800", {}, ())
    found = proposer(command("open('harness.py', 'w').write('x')")).propose(repository, given, lambda: False)
    assert isinstance(found, Proposal)
    assert found.memo is None


def test_a_folder_that_is_called_like_a_patch_is_none_and_a_huge_one_is_declined(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    (tmp_path / "p" / "0.patch").mkdir(parents=True)
    with (tmp_path / "p" / "1.patch").open("wb") as file:
        file.truncate(33_000_000)
    found = asked(repository, Proposer(ProposerKind.PATCHES, folder=str(tmp_path / "p")))
    assert isinstance(found, Declined)
    assert (found.facts["patch"], "larger than" in found.why) == ("1.patch", True)
