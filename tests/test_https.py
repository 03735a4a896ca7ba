"""Settings behind a proxy that speaks HTTPS, read by a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.rig import environ

READ = """
import django, json; django.setup()
from django.conf import settings as s
from django.test import RequestFactory
request = RequestFactory().get("/", HTTP_X_FORWARDED_PROTO="https", HTTP_HOST="lab.example")
names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SESSION_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE",
         "CSRF_COOKIE_SAMESITE", "SECURE_HSTS_SECONDS", "CSRF_TRUSTED_ORIGINS", "DEBUG")
print(json.dumps({name: getattr(s, name) for name in names} | {"secure": request.is_secure()}))
"""


def settings(home: Path, **changes: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", READ], env=environ(home, **changes), capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_behind_https_cookies_are_secure_and_forms_are_taken(tmp_path: Path) -> None:
    found = settings(tmp_path, HARNESSLAB_HTTPS="1", HARNESSLAB_HOSTS="lab.example, .lab.example")
    assert found["SESSION_COOKIE_SECURE"] is found["CSRF_COOKIE_SECURE"] is found["secure"] is True
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://lab.example", "https://*.lab.example"]
    assert found["SECURE_HSTS_SECONDS"] > 0


def test_without_it_nobody_s_header_makes_a_request_secure(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found["secure"] is found["SESSION_COOKIE_SECURE"] is found["DEBUG"] is False
    assert found["SESSION_COOKIE_HTTPONLY"] is True
    assert found["SESSION_COOKIE_SAMESITE"] == found["CSRF_COOKIE_SAMESITE"] == "Lax"
    assert found["CSRF_TRUSTED_ORIGINS"] == []
