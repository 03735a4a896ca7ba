"""Engines, users and tokens as they are read: never a secret, never a guess where something is unknown."""

from __future__ import annotations

import pytest
from django.utils import timezone

from harnesslab.accounts.models import ApiToken, User
from harnesslab.core.errors import NotFound
from harnesslab.queries.accounts import all_users, tokens_of
from harnesslab.queries.engines import (
    engine_named,
    engine_row,
    engines,
    facts_of,
    get_engine,
    is_certified,
    probing,
)
from harnesslab.store.models import Engine, Job, JobState
from harnesslab.store.text import frozen
from tests import live
from tests.hostile import TEXTS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def test_an_engine_that_nobody_asked_yet_is_neither_up_nor_down() -> None:
    made = live.engine()
    row = engine_row(made.pk)
    assert (row.up, row.checked_at, row.seed_honoured, row.certified) == (None, None, None, False)
    assert facts_of(row) == []


def test_facts_say_where_they_come_from_or_why_they_are_unknown() -> None:
    made = live.engine()
    stated = {
        "b": {"value": "<b>", "from": "engine"},
        "a": {"unknown": "it doesn't say"},
        "c": {"value": {"x": [1, None]}, "from": "probe"},
        "d": "no document",
    }
    Engine.objects.filter(pk=made.pk).update(facts=frozen(stated))  # type: ignore[arg-type]
    found = [(fact.name, fact.value, fact.origin) for fact in facts_of(engine_row(made.pk))]
    assert found == [
        ("a", "it doesn't say", ""),
        ("b", "<b>", "engine"),
        ("c", '{"x":[1,null]}', "probe"),
        ("d", "null", ""),
    ]


def test_a_retired_engine_is_listed_nowhere_and_named_as_retired() -> None:
    live.engine("z")
    gone = live.engine("a")
    assert [row.name for row in engines()] == ["a", "z"]
    Engine.objects.filter(pk=gone.pk).update(retired=True, certified=True)
    assert [row.name for row in engines()] == ["z"]
    assert not is_certified("a")
    with pytest.raises(NotFound, match="the engine 'a' is retired"):
        engine_named("a")
    assert get_engine(gone.pk).name == "a"


@pytest.mark.parametrize("name", ["", "none", *TEXTS])
def test_a_name_that_no_engine_has_is_one_sentence(name: str) -> None:
    live.engine()
    assert not is_certified(name)
    with pytest.raises(NotFound, match="no engine is registered as"):
        engine_named(name)
    with pytest.raises(NotFound, match="there is no engine 999"):
        engine_row(999)


def test_certificates_and_probes_are_of_now() -> None:
    made = live.engine()
    Job.objects.all().delete()
    assert (is_certified(made.name), probing()) == (False, False)
    Engine.objects.update(certified=True)
    job = Job.objects.create(kind="probe")
    assert (is_certified(made.name), probing()) == (True, True)
    Job.objects.filter(pk=job.pk).update(state=JobState.FAILED)
    assert not probing()


def test_tokens_come_newest_first_without_their_secrets_and_of_their_user_alone(admin: User, viewer: User) -> None:
    for number, user in enumerate((viewer, viewer, admin)):
        ApiToken.objects.create(user=user, name=f"<b>{number}", prefix=f"hl_{number}", digest=f"secret{number}" * 8)
    ApiToken.objects.filter(name="<b>0").update(revoked_at=timezone.now())
    rows = tokens_of(viewer)
    assert [(row.name, row.used_at, row.revoked_at is None) for row in rows] == [
        ("<b>1", None, True),
        ("<b>0", None, False),
    ]
    assert "secret" not in "".join(row.model_dump_json() for row in rows)


def test_users_are_those_who_may_log_in_by_name(admin: User, operator: User, viewer: User) -> None:
    User.objects.filter(pk=operator.pk).update(is_active=False)
    assert all_users() == [("ada", "admin"), ("vera", "viewer")]
