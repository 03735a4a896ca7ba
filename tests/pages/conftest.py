"""Clients by role, and a store with something on every page."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.test import Client

from harnesslab.accounts.models import User
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.running.rollout import Outcome
from harnesslab.store.models import Rollout
from tests.recordings import recording


@dataclass(frozen=True)
class Stored:
    """Three trials of one case: two alike, the third parting in its second step; and one of another case."""

    first: Rollout
    same: Rollout
    other: Rollout
    elsewhere: Rollout


@pytest.fixture
def stored(db: None) -> Stored:
    return Stored(
        store_recording(recording(), None),
        store_recording(recording(trial=1), None),
        store_recording(recording(["ls", "cat b.txt"], trial=2, outcome=Outcome.FAILED_VERIFICATION), None),
        store_recording(recording(case="case-2", outcome=Outcome.CRASH, project="another"), None),
    )


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def as_viewer(viewer: User) -> Client:
    return logged_in(viewer)


@pytest.fixture
def as_operator(operator: User) -> Client:
    return logged_in(operator)


@pytest.fixture
def as_admin(admin: User) -> Client:
    return logged_in(admin)
