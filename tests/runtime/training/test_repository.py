"""Candidates are commits under refs; only a promotion moves the branch, and only forwards in a clean tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harnesslab.core.errors import Conflict, InvalidValue
from harnesslab.runtime.driver.checkout import resolve
from harnesslab.runtime.training.git import GitFailed
from harnesslab.runtime.training.repository import NoChange, OutsideEditableFiles, Repository
from harnesslab.runtime.training.revisions import revisions
from tests.runtime.training.repositories import make_repository, patch_of, run_git

PATCH = b"--- a/harness.py\n+++ b/harness.py\n@@ -1,4 +1,4 @@\n-ONE = 1\n+ONE = 3\n \n \n TWO = 2\n"


def test_a_candidate_is_a_commit_that_no_branch_and_no_file_shows(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    made = repository.candidate_of_patch(base, patch_of(repository, harness__py="ONE = 5\n\n\nTWO = 2\n"), "five")
    ref = repository.keep(made.commit)
    assert made.files == ("harness.py",)
    assert "+ONE = 5" in made.diff
    assert repository.head() == base
    assert run_git(repository.place, "status", "--porcelain") == ""
    assert (repository.place / "harness.py").read_text().startswith("ONE = 1")
    assert run_git(repository.place, "rev-parse", ref) == made.commit
    assert run_git(repository.place, "rev-parse", f"{made.commit}^") == base


def test_a_patch_applies_beside_what_was_promoted_before(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    first = patch_of(repository, harness__py="ONE = 5\n\n\nTWO = 2\n")
    second = patch_of(repository, harness__py="ONE = 1\n\n\nTWO = 9\n")
    promoted = repository.candidate_of_patch(base, first, "one").commit
    repository.promote(base, promoted)
    again = repository.candidate_of_patch(promoted, second, "two")
    assert run_git(repository.place, "show", f"{again.commit}:harness.py") == "ONE = 5\n\n\nTWO = 9"


def test_a_promotion_moves_the_checked_out_branch_and_its_files(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    made = repository.candidate_of_patch(base, patch_of(repository, examples_in_a__json="{}"), "example")
    repository.promote(base, made.commit)
    repository.promote(base, made.commit)  # as after a kill
    assert repository.head() == made.commit
    assert (repository.place / "examples" / "a.json").read_text() == "{}"
    assert run_git(repository.place, "status", "--porcelain") == ""


def test_a_promotion_moves_a_branch_that_is_not_checked_out(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    run_git(repository.place, "checkout", "-q", "-b", "mine")
    (repository.place / "harness.py").write_text("dirty")
    made = repository.candidate_of_patch(base, PATCH, "three")
    repository.promote(base, made.commit)
    assert repository.head() == made.commit
    assert (repository.place / "harness.py").read_text() == "dirty"


def test_a_dirty_tree_is_left_alone(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    made = repository.candidate_of_patch(base, patch_of(repository, harness__py="ONE = 5\n"), "five")
    (repository.place / "README").write_text("being written")
    with pytest.raises(Conflict, match=r"README"):
        repository.promote(base, made.commit)
    assert repository.head() == base
    assert (repository.place / "README").read_text() == "being written"


def test_a_branch_that_moved_is_left_alone(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    made = repository.candidate_of_patch(base, patch_of(repository, harness__py="ONE = 5\n"), "five")
    (repository.place / "README").write_text("more\n")
    run_git(repository.place, "commit", "-qam", "two")
    moved = repository.head()
    with pytest.raises(Conflict, match="the branch moved"):
        repository.promote(base, made.commit)
    assert repository.head() == moved


@pytest.mark.parametrize(
    ("files", "error", "says"),
    [
        ({"README": "x\n"}, OutsideEditableFiles, "README"),
        ({"harness__py": "ONE = 1\n\n\nTWO = 2\n"}, NoChange, "nothing|does not apply"),
        ({"big__py": "x" * 2_100_000}, OutsideEditableFiles, "larger"),
    ],
)
def test_a_change_outside_the_surface_or_of_nothing_is_no_candidate(
    tmp_path: Path, files: dict[str, str], error: type[Exception], says: str
) -> None:
    repository = make_repository(tmp_path / "r")
    with pytest.raises(error, match=says):
        repository.candidate_of_patch(repository.head(), patch_of(repository, **files), "m")


def test_a_link_is_no_candidate(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    with repository.worktree(base) as place:
        (place / "other.py").symlink_to("/etc/passwd")
        with pytest.raises(OutsideEditableFiles, match="link"):
            repository.candidate_of_tree(base, place, "m")
    assert run_git(repository.place, "worktree", "list").count("\n") == 0


def test_hooks_do_not_run(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    for name in ("post-commit", "post-merge", "reference-transaction", "post-checkout"):
        hook = repository.place / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
        hook.chmod(0o755)
    base = repository.head()
    made = repository.candidate_of_patch(base, PATCH, "m")
    with repository.worktree(base):
        pass
    repository.keep(made.commit)
    repository.promote(base, made.commit)
    assert not (tmp_path / "ran").exists()


def test_a_repository_elsewhere_can_not_be_trained() -> None:
    with pytest.raises(InvalidValue, match="on this machine"):
        Repository.at("https://example.invalid/r.git", "main", ())


def test_the_environment_of_a_hook_leads_to_no_other_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, other = make_repository(tmp_path / "r"), make_repository(tmp_path / "other")
    run_git(other.place, "commit", "-q", "--allow-empty", "-m", "two")
    monkeypatch.setenv("GIT_DIR", str(other.place / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.place / ".git" / "index"))
    base = repository.head()
    made = repository.candidate_of_patch(base, PATCH, "m")
    assert resolve(str(repository.place), "main", tmp_path) == base
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert base != other.head()
    assert run_git(repository.place, "cat-file", "-t", made.commit) == "commit"


def test_a_branch_in_another_working_tree_is_moved_with_its_files_or_not_at_all(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    run_git(repository.place, "checkout", "-q", "-b", "mine")
    tree = tmp_path / "a tree"
    run_git(repository.place, "worktree", "add", "-q", str(tree), "main")
    made = repository.candidate_of_patch(base, PATCH, "three")
    (tree / "README").write_text("being written")
    with pytest.raises(Conflict, match="README"):
        repository.promote(base, made.commit)
    run_git(tree, "checkout", "-q", ".")
    repository.promote(base, made.commit)
    assert repository.head() == made.commit
    assert run_git(tree, "status", "--porcelain") == ""


def test_a_promotion_that_was_made_and_gone_on_from_is_left_as_it_is(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    made = repository.candidate_of_patch(base, PATCH, "m")
    repository.promote(base, made.commit)
    run_git(repository.place, "commit", "-q", "--allow-empty", "-m", "on top")
    on_top = repository.head()
    repository.promote(base, made.commit)
    assert repository.head() == on_top


def test_a_promotion_waits_for_the_git_of_a_worker_that_was_killed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    made = repository.candidate_of_patch(base, PATCH, "m")
    lock = repository.place / ".git" / "index.lock"
    lock.touch()
    with subprocess.Popen(["sh", "-c", f"sleep 0.7; rm '{lock}'"]):
        repository.promote(base, made.commit)
    assert repository.head() == made.commit


def test_files_in_the_way_of_a_promotion_are_named(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    base = repository.head()
    made = repository.candidate_of_patch(base, patch_of(repository, new__py="x = 1\n"), "m")
    (repository.place / "new.py").write_text("mine")
    with pytest.raises(GitFailed, match=r"untracked .*: new\.py"):
        repository.promote(base, made.commit)
    assert (repository.place / "new.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["gone", "-x", "--all"])
def test_a_branch_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    repository = make_repository(tmp_path / "r")
    with pytest.raises(GitFailed, match=f"no branch '{name}'"):
        Repository.at(str(repository.place), name, ()).head()


@pytest.mark.parametrize("message", ["a\0b", "half \ud800", "-m", ""])
def test_any_description_becomes_a_message(tmp_path: Path, message: str) -> None:
    repository = make_repository(tmp_path / "r")
    made = repository.candidate_of_patch(repository.head(), PATCH, message)
    said = run_git(repository.place, "show", "-s", "--format=%B", made.commit)
    assert said == message.replace("\0", "␀").replace("\ud800", "?")


@pytest.mark.parametrize("name", [".git/config", "../x.py", "/tmp/x.py", "a/../../x.py"])
def test_a_patch_reaches_nothing_outside_the_files(tmp_path: Path, name: str) -> None:
    repository = make_repository(tmp_path / "r", surface=("*",))
    patch = f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n".encode()
    with pytest.raises((NoChange, OutsideEditableFiles)):
        repository.candidate_of_patch(repository.head(), patch, "m")


def test_a_submodule_is_no_candidate(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", surface=("*",))
    base = repository.head()
    patch = f"diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..{base[:7]}\n--- /dev/null\n+++ b/sub\n"
    patch += f"@@ -0,0 +1 @@\n+Subproject commit {base}\n"
    with pytest.raises((NoChange, OutsideEditableFiles)):
        repository.candidate_of_patch(base, patch.encode(), "m")


def test_what_the_repository_ignores_is_no_part_of_a_change(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    (repository.place / ".gitignore").write_text("__pycache__/\n")
    run_git(repository.place, "add", ".")
    run_git(repository.place, "commit", "-qm", "ignore")
    base = repository.head()
    with repository.worktree(base) as place:
        (place / "harness.py").write_text("ONE = 3\n")
        (place / "__pycache__").mkdir()
        (place / "__pycache__" / "harness.pyc").write_bytes(b"\0")
        made = repository.candidate_of_tree(base, place, "m")
    assert made.files == ("harness.py",)


def test_a_subject_of_any_characters_is_one_revision(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    subject = "a\u2028b\x0c\x1dc"
    run_git(repository.place, "commit", "-q", "--allow-empty", "-m", subject)
    found = revisions(str(repository.place), "main")
    assert [each.subject for each in found] == [subject, subject, "one"]


@pytest.mark.parametrize("place", ["a\0b", "half \ud800"])
def test_a_path_that_no_system_has_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(InvalidValue, match="no path"):
        resolve(place, "main", tmp_path)
