"""Guessing passwords is slow, and who knows the password isn't kept out by others' guesses elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from harnesslab.accounts import throttle
from harnesslab.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_before(settings: Any) -> Iterator[None]:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a real one is slow on purpose
    cache.clear()
    yield
    cache.clear()


def tried(client: Client, password: str, name: str = "ada") -> Any:
    return client.post("/login", {"username": name, "password": password})


def test_after_ten_failures_even_the_right_password_waits(client: Client, admin: User) -> None:
    assert {tried(client, "wrong").status_code for _ in range(throttle.PER_NAME)} == {200}
    refused = tried(client, "a-long-password", "ADA")
    assert refused.status_code == 429
    assert "too many logins failed" in refused.content.decode().lower()
    assert tried(client, "a-long-password", "vera").status_code == 200


def test_a_login_forgets_the_failures_before(client: Client, admin: User) -> None:
    for _ in range(2):
        for _ in range(throttle.PER_NAME - 1):
            tried(client, "wrong")
        assert tried(client, "a-long-password").status_code == 302


def test_one_password_for_many_names_waits_too(client: Client, admin: User) -> None:
    for number in range(throttle.PER_ADDRESS):
        tried(client, "wrong", f"name{number}")
    assert tried(client, "wrong", "another").status_code == 429
