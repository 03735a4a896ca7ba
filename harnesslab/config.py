"""Configuration from the environment, read once, checked at the start."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from harnesslab.core.errors import InvalidValue
from harnesslab.kept_secret import kept_secret

ADDRESS = "serve.address"
"""Where in the home other processes find the server that runs; only that it answers says that it does."""


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the environment decides."""

    home: Path
    """Folder of the embedded database, the spool and the secret key."""
    secret_key: str
    database_url: str
    """Empty: SQLite in `home`."""
    redis_url: str
    """Empty: the embedded broker in `home`."""
    debug: bool
    public_read: bool
    """Whether pages are readable without a login."""
    hosts: tuple[str, ...]
    https: bool
    """Whether a proxy in front speaks HTTPS and says so in `X-Forwarded-Proto`."""

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Config:
        """Read the configuration; raises `InvalidValue` naming the variable that is wrong."""
        home = Path(environ.get("HARNESSLAB_HOME") or _default_home()).expanduser().resolve()
        secret_key = environ.get("HARNESSLAB_SECRET_KEY", "")
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            secret_key = secret_key or kept_secret(home / "secret-key", lambda: secrets.token_urlsafe(50))
        except OSError as error:
            raise InvalidValue(
                f"can't be written: {error.strerror}", where=str(home), hint="name another folder in HARNESSLAB_HOME"
            ) from error
        hosts = environ.get("HARNESSLAB_HOSTS") or "localhost,127.0.0.1,[::1]"
        return cls(
            home=home,
            secret_key=secret_key,
            database_url=environ.get("DATABASE_URL", ""),
            redis_url=environ.get("REDIS_URL", ""),
            debug=_flag(environ, "HARNESSLAB_DEBUG"),
            public_read=_flag(environ, "HARNESSLAB_PUBLIC_READ"),
            https=_flag(environ, "HARNESSLAB_HTTPS"),
            hosts=tuple(host.strip() for host in hosts.split(",") if host.strip()),
        )


def database(config: Config) -> dict[str, object]:
    """Return Django's settings for the default database; raises `InvalidValue` for an URL it can't use."""
    if not config.database_url:
        return _sqlite(str(config.home / "harnesslab.sqlite3"))
    parts, port = _split(config.database_url)
    if parts.scheme == "sqlite":
        return _sqlite(parts.path.removeprefix("/") if parts.path.startswith("//") else parts.path)
    if parts.scheme not in ("postgres", "postgresql"):
        raise InvalidValue(
            f"unknown scheme {parts.scheme!r}", where="DATABASE_URL", hint="postgresql://user:password@host:5432/name"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": port,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


def served_at(home: Path) -> str:
    """Return the address that a server of this home said it listens on, without a slash at its end; or nothing."""
    try:
        address = (home / ADDRESS).read_text().strip()
    except (OSError, UnicodeError):
        return ""
    return address.rstrip("/") if address.startswith("http://") else ""


def _split(url: str) -> tuple[SplitResult, str]:
    """Return the parts of an URL and its port, without ever repeating its password."""
    try:
        parts = urlsplit(url)
        return parts, str(parts.port or "")
    except ValueError as error:
        raise InvalidValue(
            "not an URL with a host and a port", where="DATABASE_URL", hint="postgresql://user:password@host:5432/name"
        ) from error


def _sqlite(path: str) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "CONN_MAX_AGE": 60,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",  # the default mode answers "database is locked" under two writers
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-4000;",
        },
    }


def _default_home() -> str:
    return str(Path(__file__).resolve().parent.parent / ".data")


def _flag(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower()
    if value in ("", "0", "false", "no", "off"):
        return False
    if value in ("1", "true", "yes", "on"):
        return True
    raise InvalidValue(f"{value!r} is neither yes nor no", where=name, hint="use 1 or 0")
