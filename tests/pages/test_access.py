"""Nothing but the login page, health and static files is readable without a login; each role does what it may."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import Client
from django.urls import URLPattern, get_resolver

from harnesslab.accounts import tokens
from harnesslab.accounts.middleware import OPEN
from harnesslab.accounts.models import User
from tests.pages.conftest import Stored

pytestmark = pytest.mark.django_db


def addresses() -> list[str]:
    """Every address of the pages, with something for its parameters."""
    found = []
    for pattern in get_resolver().url_patterns:
        if isinstance(pattern, URLPattern) and pattern.name not in OPEN:
            route = str(pattern.pattern)
            found.append("/" + re.sub("<int:[a-z_]+>", "1", route).replace("<str:digest>", "ab"))
    return found


@pytest.mark.parametrize("address", addresses())
def test_a_stranger_is_sent_to_the_login(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/login")


@pytest.mark.parametrize("address", ["/api/v1/rollouts", "/api/v1/projects", "/api/v1/openapi.json"])
def test_the_api_answers_a_stranger_with_401(client: Client, address: str) -> None:
    assert client.get(address).status_code == 401


def test_health_and_login_are_open(client: Client) -> None:
    assert client.get("/health").json()["status"] == "ok"
    assert client.get("/login").status_code == 200


def test_reading_can_be_made_public_and_writing_can_not(
    client: Client, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CONFIG", replace(settings.CONFIG, public_read=True))
    assert client.get("/rollouts/").status_code == 200
    assert client.post("/import/files/").status_code == 302
    assert client.post(f"/rollouts/{stored.first.pk}/delete/").status_code == 302


@pytest.mark.parametrize(
    "address", ["/import/files/", "/rollouts/1/notes/", "/jobs/1/cancel/", "/compare/override/?a=1&b=2"]
)
def test_a_viewer_does_not_write(as_viewer: Client, address: str) -> None:
    answer = as_viewer.post(address)
    assert answer.status_code == 403
    assert "operator" in answer.content.decode()


def test_an_operator_does_not_delete(as_operator: Client, stored: Stored) -> None:
    assert as_operator.post(f"/rollouts/{stored.first.pk}/delete/", {"reason": "x"}).status_code == 403


def test_a_token_reads_within_its_scope(client: Client, admin: User, stored: Stored) -> None:
    _, secret = tokens.issue(admin, "ci", "viewer")
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.get("/api/v1/rollouts", headers=headers).json()["count"] == 4
    assert client.post("/api/v1/imports", headers=headers).status_code in (403, 422)
    assert client.post("/import/files/", headers=headers).status_code == 302  # pages take sessions alone


def test_a_wrong_or_revoked_token_is_refused(client: Client, admin: User) -> None:
    row, secret = tokens.issue(admin, "ci", "viewer")
    assert client.get("/api/v1/rollouts", headers={"Authorization": f"Bearer {secret}x"}).status_code == 401
    type(row).objects.filter(pk=row.pk).update(revoked_at="2026-01-01T00:00Z")
    assert client.get("/api/v1/rollouts", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def test_only_the_hash_of_a_token_is_kept(admin: User) -> None:
    row, secret = tokens.issue(admin, "ci", "viewer")
    assert secret not in (row.digest, row.prefix)
    assert len(row.digest) == 64


def test_the_csp_allows_no_inline_script(client: Client) -> None:
    policy = client.get("/login").headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
