"""Harnesses' git repositories as this instance reads them."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from harnesslab.core.errors import InvalidValue
from harnesslab.runtime.driver.checkout import CheckoutFailed, resolve


def harness_cache() -> Path:
    """Return the folder that holds harnesses' files by commit, and mirrors of their repositories."""
    home: Path = settings.CONFIG.home
    return home / "harnesses"


def commit_of(repository: str, revision: str) -> str:
    """Return the commit that somebody's revision names; raises `InvalidValue` also where git can't read there.

    A worker that finds the same repository gone asks `resolve` itself: its rollout fails, and nobody filled in a form.
    """
    try:
        return resolve(repository, revision, harness_cache())
    except CheckoutFailed as error:
        hint = error.hint or "is it there, and may this server read it?"
        raise InvalidValue(
            f"the harness's repository can't be read: {error.what}", where="repository", hint=hint
        ) from None
