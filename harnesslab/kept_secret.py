"""A secret in a file of the home folder, made once: readable by its owner alone, and never seen half written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def kept_secret(file: Path, make: Callable[[], str]) -> str:
    """Return the kept secret; of two processes that make one at a time, the first wins."""
    if not file.exists():
        draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            handle.write(make())
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return file.read_text().strip()
