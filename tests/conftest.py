"""Fixtures: the database on SQLite and PostgreSQL, a real server, a real browser, users of each role."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.rig import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from harnesslab.accounts.models import User
    from harnesslab.store.models import Project

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_configure() -> None:
    """Let pages name their static files without having collected and hashed them first."""
    if "DJANGO_SETTINGS_MODULE" in os.environ:
        from django.conf import settings

        settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Put SQLite's test database into a file, so that threads and processes of a test share it as they do in use."""
    from django.conf import settings
    from django.db import connection

    if connection.vendor == "sqlite":
        name = str(Path(settings.CONFIG.home) / "test.sqlite3")
        connection.settings_dict["TEST"]["NAME"] = name


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Let tests with real transactions empty the append-only tables, whose triggers forbid it."""
    from django.db import connection
    from django.test import TransactionTestCase

    from harnesslab.store.append_only import create_triggers, drop_triggers

    teardown = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]

    def without_triggers(self: TransactionTestCase) -> None:
        drop_triggers(connection)
        teardown(self)
        create_triggers(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", without_triggers)
        yield


@pytest.fixture
def admin(db: None) -> User:
    """A user with the role admin."""
    return _user("ada", "admin")


@pytest.fixture
def operator(db: None) -> User:
    """A user with the role operator."""
    return _user("olga", "operator")


@pytest.fixture
def viewer(db: None) -> User:
    """A user with the role viewer."""
    return _user("vera", "viewer")


@pytest.fixture
def no_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wake-up reaches a worker: jobs wait in their rows, where tests look at them or run them."""
    monkeypatch.setattr("harnesslab.queue.wake", lambda *_: None)


@pytest.fixture
def project(tmp_path: Path, db: None) -> Project:
    """A project with a harness of its own, a panel of two cases, and an engine that nobody answers at."""
    from tests import measuring

    made = measuring.project(tmp_path)
    measuring.panel()
    return made


def _user(name: str, role: str) -> User:
    from harnesslab.accounts.models import User

    return User.objects.create_user(name, password="a-long-password", role=role)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A real `harnesslab serve` on SQLite with users of each role, for the whole run."""
    served = Lab(tmp_path_factory.mktemp("lab"))
    try:
        served.add_users()
        yield served
    finally:
        served.program.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium; its absence is a failure."""
    from playwright.sync_api import sync_playwright

    names = (os.environ.get("CHROMIUM", ""), "chromium", "google-chrome", "chromium-browser")
    place = next((found for name in names if name and (found := shutil.which(name))), None)
    if place is None:
        pytest.fail("browser tests need Chromium: install chromium, or name it with CHROMIUM=/path", pytrace=False)
    # playwright's event loop lives in this thread, where Django would refuse to use the database
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=place, args=list(CHROMIUM_FLAGS))
        yield launched
        launched.close()


@pytest.fixture
def console_errors() -> list[str]:
    """What the pages of a test complained about; a test that expects some removes them."""
    return []


@pytest.fixture
def page(browser: Browser, lab: Lab, console_errors: list[str]) -> Iterator[Page]:
    """A page of a fresh session; the test fails where the console shows an error or a policy violation."""
    context = browser.new_context(base_url=lab.address, viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    opened.on("console", lambda said: console_errors.append(said.text) if said.type == "error" else None)
    opened.on("pageerror", lambda error: console_errors.append(str(error)))
    yield opened
    context.close()
    assert console_errors == []


@pytest.fixture
def page_as(page: Page, lab: Lab) -> Callable[[str], Page]:
    """Log in as `viewer`, `operator` or `admin` and give the page."""

    def log_in(role: str) -> Page:
        page.goto("/login")
        page.fill("#id_username", role)
        page.fill("#id_password", lab.passwords[role])
        page.click("button:has-text('Log in')")
        page.wait_for_url(lambda url: "/login" not in url)
        return page

    return log_in
