"""Fixtures for all tests; those of the pure core need none of them."""

from __future__ import annotations

import os
import tempfile

os.environ.setdefault("HARNESSLAB_HOME", tempfile.mkdtemp(prefix="harnesslab-test-"))

import pytest

from harnesslab.accounts.models import User


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("ada", password="a-long-password", role="admin")


@pytest.fixture
def operator(db: None) -> User:
    return User.objects.create_user("olga", password="a-long-password", role="operator")


@pytest.fixture
def viewer(db: None) -> User:
    return User.objects.create_user("vera", password="a-long-password", role="viewer")
