"""Requests that nobody's browser sends: each is answered, none is an error of the server."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.test import Client

from harnesslab.accounts import tokens
from harnesslab.accounts.models import ApiToken, User
from harnesslab.store.models import Note
from tests.pages.conftest import Stored, logged_in

pytestmark = pytest.mark.django_db
HUGE = "9" * 20
ENDLESS = "9" * 5000
ODD = ["-1", "1e9", "²", "٣", HUGE, ENDLESS, "nan", "\x00", "\ud800".encode("utf-8", "replace").decode(), "' OR 1=1 --"]
PAGES = [
    "/rollouts/?after={}",
    "/rollouts/?after={}~1&sort=most-steps",
    "/rollouts/?after=1~{}&sort=longest",
    "/rollouts/?by=case&after={}",
    "/rollouts/?prefix={}@1",
    "/rollouts/?prefix=1@{}",
    "/rollouts/?q={}",
    "/rollouts/?case={}",
    "/rollouts/?tag={}",
    "/rollouts/?manifest={}",
    "/rollouts/?outcome={}",
    "/rollouts/values/?facet={}",
    "/rollouts/values/?facet=model&q={}",
    "/rollouts/ID/?event={}",
    "/rollouts/ID/?step={}",
    "/rollouts/ID/events/?from={}",
    "/rollouts/ID/events/1/part/?name={}",
    "/rollouts/ID/events/1/part/?name=message:{}",
    "/compare/?a={}&b=ID",
    "/compare/?a=ID&b=ID&row={}",
    "/compare/?a=ID&b=ID&level={}",
    "/compare/?a=ID&b=ID&rules={}",
    "/compare/rows/?a=ID&b=ID&row={}",
    "/compare/row/?a=ID&b=ID&row={}",
    "/compare/report.json?a=ID&b={}",
    "/experiments/?after={}",
    "/experiments/?project={}",
    "/experiments/?decision={}",
    "/panels/?project={}",
    "/trainings/?project={}",
    "/experiments/new/?project={}",
    "/experiments/compare/?e={}&e=1",
    "/experiments/grid/?project={}",
    "/projects/?name={}",
    "/requests/?offset={}",
    "/requests/{}/",
    "/manifests/{}/",
    "/manifests/{}.json",
    "/api/v1/rollouts?after={}",
    "/api/v1/rollouts?q={}",
    "/api/v1/experiments?after={}",
    "/api/v1/experiments/compare?e={}&e=1",
    "/api/v1/experiments/grid?project={}",
    "/api/v1/rollouts/ID/events?start={}",
    "/api/v1/comparisons?a=ID&b={}",
    "/api/v1/requests?offset={}",
    "/api/v1/requests/{}",
    "/api/v1/manifests/{}",
]
PATHS = [
    "/rollouts/{}/",
    "/rollouts/{}/events/",
    "/rollouts/ID/events/{}/",
    "/rollouts/{}/bundle.zip",
    "/jobs/{}/",
    "/experiments/{}/",
    "/experiments/{}/progress/",
    "/panels/{}/",
    "/panels/{}/panel.zip",
    "/trainings/{}/",
    "/projects/{}/",
    "/projects/{}/memo/",
    "/api/v1/projects/{}/story",
    "/api/v1/rollouts/{}",
    "/api/v1/experiments/{}",
    "/api/v1/experiments/{}/progress",
    "/api/v1/trainings/{}",
    "/api/v1/rollouts/ID/events/{}",
    "/api/v1/rollouts/{}/bundle",
    "/api/v1/jobs/{}",
]


@pytest.mark.parametrize("page", PAGES)
def test_odd_values_in_an_address_are_answered(as_viewer: Client, stored: Stored, page: str) -> None:
    for value in ODD:
        answer = as_viewer.get(page.replace("ID", str(stored.first.pk)).format(quote(value)))
        assert answer.status_code < 500, value


@pytest.mark.parametrize("path", PATHS)
def test_numbers_beyond_every_row_are_not_found(as_viewer: Client, stored: Stored, path: str) -> None:
    for value in ("0", str(2**31), str(2**63 - 1), HUGE, "9" * 1000):
        answer = as_viewer.get(path.replace("ID", str(stored.first.pk)).format(value))
        assert answer.status_code in (200, 404), value
        assert answer.status_code == 404 or value == "0"


def test_long_query_strings_are_answered(as_viewer: Client, stored: Stored) -> None:
    assert as_viewer.get(f"/rollouts/?q={'a' * 60_000}").status_code == 400
    assert as_viewer.get("/rollouts/?" + "&".join(f"x{n}=1" for n in range(900))).status_code == 200


@pytest.mark.parametrize("method", ["put", "delete", "patch", "options", "head"])
def test_other_methods_are_answered(as_admin: Client, stored: Stored, method: str) -> None:
    for address in ("/", "/rollouts/", f"/rollouts/{stored.first.pk}/", "/import/files/", "/api/v1/rollouts"):
        assert getattr(as_admin, method)(address).status_code < 500, address


FORMS = [
    ("/account/tokens/", {"name": "\x00" * 3, "scope": "viewer"}),
    ("/account/tokens/", {"name": "n" * 5000, "scope": "viewer"}),
    ("/account/tokens/", {"name": "n", "scope": "\x00"}),
    (f"/account/tokens/{HUGE}/revoke/", {}),
    ("/account/users/", {"name": "n\x00l", "role": "viewer", "password": "a-long-password"}),
    ("/account/users/", {"name": "n" * 400, "role": "viewer", "password": "a-long-password"}),
    ("/account/users/", {"name": "n\x00l", "role": "viewer"}),
    ("/account/users/", {"name": "x" * 400, "role": "viewer", "password": "short"}),
    ("/rollouts/views/", {"name": "\x00", "query": "q=%00"}),
    ("/rollouts/views/", {"name": "v" * 500, "query": "q=" + "a" * 20_000}),
    ("/rollouts/ID/notes/", {"text": "a\x00b", "step": "²"}),
    ("/rollouts/ID/notes/", {"text": "a", "step": HUGE}),
    ("/rollouts/ID/notes/", {"text": "a", "step": "9999999999"}),
    ("/rollouts/ID/delete/", {"reason": " "}),
    ("/compare/override/?a=ID&b=ID", {"cause": "\x00", "reason": "x"}),
    ("/compare/override/?a=ID&b=ID", {"cause": "model", "reason": "a\x00b"}),
    (f"/jobs/{HUGE}/cancel/", {}),
    ("/import/files/", {"files": "not a file"}),
    ("/login", {"username": "a\x00b", "password": "\x00"}),
]


@pytest.mark.parametrize(("address", "form"), FORMS)
def test_odd_forms_are_answered(as_admin: Client, stored: Stored, address: str, form: dict[str, str]) -> None:
    answer = as_admin.post(address.replace("ID", str(stored.first.pk)), form)
    assert answer.status_code < 500


def test_a_note_is_of_a_step_that_there_is(as_operator: Client, stored: Stored) -> None:
    answer = as_operator.post(f"/rollouts/{stored.first.pk}/notes/", {"text": "a", "step": "9999999999"})
    assert answer.status_code in (400, 404)
    assert not Note.objects.exists()


def test_every_form_needs_its_token(admin: User, stored: Stored) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin)
    for address, form in FORMS:
        if address != "/login":
            answer = strict.post(address.replace("ID", str(stored.first.pk)), form)
            assert answer.status_code == 403, address


@pytest.mark.parametrize("address", ["/api/v1/imports", "/api/v1/jobs/1/cancel"])
def test_a_session_needs_the_token_of_its_forms_at_the_api_too(admin: User, address: str) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin)
    assert strict.post(address).status_code == 403
    page = strict.get("/import/")
    token = page.cookies["csrftoken"].value
    assert strict.post(address, headers={"X-CSRFToken": token}).status_code != 403


def test_a_token_makes_no_token_and_no_user(client: Client, admin: User) -> None:
    """A token of a narrow scope would be as good as its user's password otherwise."""
    _, secret = tokens.issue(admin, "ci", "viewer")
    bearer = {"Authorization": f"Bearer {secret}"}
    for address, form in FORMS:
        if address.startswith("/account/"):
            assert client.post(address, form, headers=bearer).status_code in (302, 401, 403), address
    assert client.get("/account/", headers=bearer).status_code in (302, 401, 403)
    assert ApiToken.objects.count() == 1
    assert User.objects.count() == 1


def test_a_user_who_was_turned_off_is_a_stranger_at_once(admin: User) -> None:
    client = logged_in(admin)
    _, secret = tokens.issue(admin, "ci", "admin")
    bearer = {"Authorization": f"Bearer {secret}"}
    assert client.get("/").status_code == 200
    assert Client().get("/api/v1/projects", headers=bearer).status_code == 200
    User.objects.filter(pk=admin.pk).update(is_active=False)
    assert client.get("/").status_code == 302
    assert Client().get("/api/v1/projects", headers=bearer).status_code == 401


@pytest.mark.parametrize(
    "address", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
)
def test_a_login_leads_nowhere_else(client: Client, admin: User, address: str) -> None:
    answer = client.post(f"/login?next={quote(address)}", {"username": "ada", "password": "a-long-password"})
    assert answer.headers["Location"] == "/"


@pytest.mark.parametrize("host", ["evil.example", "localhost@evil.example", "localhost\r\nX: y", ""])
def test_a_foreign_host_is_refused(client: Client, host: str) -> None:
    assert client.get("/login", headers={"Host": host}).status_code == 400
