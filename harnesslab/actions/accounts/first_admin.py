"""The first admin of an installation, so that someone can log in at all."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from harnesslab.accounts.models import Role, User
from harnesslab.actions.accounts.users import add_user

NAME = "admin"
FILE = "first-admin"
"""Name of the file in the home folder that keeps the password, readable by its owner alone."""


@dataclass(frozen=True, slots=True)
class FirstAdmin:
    """Who may log in; the password is empty once it was changed or its file removed."""

    name: str
    password: str


def ensure_first_admin(home: Path) -> FirstAdmin:
    """Make an admin with a random password where there is no user yet; else say what is still known of it."""
    place = home / FILE
    if not User.objects.exists():
        password = secrets.token_urlsafe(12)
        user = add_user(None, NAME, password, Role.ADMIN)
        _keep(place, f"{password}\n{user.password}\n")
        return FirstAdmin(NAME, password)
    if not place.exists():
        return FirstAdmin("", "")
    password, encoded = place.read_text().splitlines()
    # comparing the stored forms says whether the password was changed, without the cost of hashing
    unchanged = User.objects.filter(username=NAME, password=encoded, is_active=True).exists()
    return FirstAdmin(NAME, password if unchanged else "")


def _keep(place: Path, text: str) -> None:
    place.unlink(missing_ok=True)
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
        handle.write(text)
