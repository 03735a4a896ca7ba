"""Candidates are commits under refs; only a promotion moves the branch, and only forwards in a clean tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.core.errors import Conflict, InvalidValue
from tests.workers.training.repositories import make_repository, patch_of, run_git
from workers.training.repository import NoChange, OutsideSurface, Repository

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
        ({"README": "x\n"}, OutsideSurface, "README"),
        ({"harness__py": "ONE = 1\n\n\nTWO = 2\n"}, NoChange, "nothing|does not apply"),
        ({"big__py": "x" * 2_100_000}, OutsideSurface, "larger"),
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
        with pytest.raises(OutsideSurface, match="link"):
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
