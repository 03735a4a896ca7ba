"""Harness revisions are named by people: what is none is refused in one sentence that holds no path."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.core.errors import InvalidValue
from harnesslab.runtime.demonstration.repository import ensure_repository
from harnesslab.runtime.driver.checkout import resolve


@pytest.mark.parametrize("revision", ["", "nope", "--upload-pack=x", "\x00", "r2\n", "\ud800", "a" * 10_000, "../.."])
def test_a_revision_that_is_none_is_refused_by_name(revision: str, tmp_path: Path) -> None:
    repository = ensure_repository(tmp_path)
    with pytest.raises(InvalidValue) as refused:
        resolve(str(repository), revision, tmp_path)
    assert refused.value.where == "revision"
    assert str(tmp_path) not in refused.value.sentence
    assert len(refused.value.sentence) < 400
