"""Requests to an engine stay at or below its ceiling, first come first served, whatever becomes of a worker."""

from __future__ import annotations

import os
import secrets
import threading
import time
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.utils import timezone

from harnesslab.actions.engines import registration as engines
from harnesslab.actions.engines import slots
from harnesslab.actions.engines.slots import DatabaseSlots, RedisSlots, Slots, turn
from harnesslab.core.errors import TryLater
from harnesslab.requests.engines import EngineRequest
from harnesslab.store.models import Engine, EngineTicket

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = ["database", "redis"] if os.environ.get("REDIS_URL") else ["database"]


def registered(name: str) -> Engine:
    return engines.register(EngineRequest(name=name, kind="openai", address="http://127.0.0.1:9", model="m"))


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest) -> Slots:
    """Where the tickets are."""
    return RedisSlots(settings.CONFIG.redis_url) if request.param == "redis" else DatabaseSlots()


@pytest.fixture
def engine() -> int:
    """The id of a registered engine."""
    made = registered(f"e-{secrets.token_hex(4)}")
    return made.pk


def test_so_many_are_granted_as_the_ceiling_says_and_the_first_in_line_is_next(kept: Slots, engine: int) -> None:
    assert [kept.ask(engine, 2, holder) for holder in "abcd"] == [True, True, False, False]
    assert kept.counts([engine]) == {engine: (2, 2)}
    kept.give_back(engine, "a")
    assert not kept.ask(engine, 2, "d")
    assert kept.ask(engine, 2, "c")
    assert kept.counts([engine]) == {engine: (2, 1)}


def test_asking_again_keeps_what_was_granted(kept: Slots, engine: int) -> None:
    assert kept.ask(engine, 1, "a")
    assert kept.ask(engine, 1, "a")
    assert not kept.ask(engine, 1, "b")
    assert kept.counts([engine]) == {engine: (1, 1)}


def test_one_that_gives_up_waiting_leaves_the_line(kept: Slots, engine: int) -> None:
    kept.ask(engine, 1, "a")
    kept.ask(engine, 1, "b")
    kept.ask(engine, 1, "c")
    kept.give_back(engine, "b")
    kept.give_back(engine, "a")
    assert kept.ask(engine, 1, "c")


def test_the_ticket_of_a_killed_worker_runs_out(kept: Slots, engine: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "TTL_S", 0.2)
    assert kept.ask(engine, 1, "killed")
    assert not kept.ask(engine, 1, "waits")
    deadline = time.monotonic() + 10
    while not kept.ask(engine, 1, "waits"):
        assert time.monotonic() < deadline
    assert kept.counts([engine])[engine][1] == 0


def test_engines_have_lines_of_their_own(kept: Slots, engine: int) -> None:
    other = registered("another").pk
    assert kept.ask(engine, 1, "a")
    assert kept.ask(other, 1, "b")


def test_threads_at_once_never_exceed_the_ceiling(kept: Slots, engine: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "SLOWEST_POLL_S", 0.05)
    running, most, lock = 0, 0, threading.Lock()
    failures: list[BaseException] = []

    def work() -> None:
        nonlocal running, most
        try:
            for _ in range(3):
                with turn(kept, engine, 2, 60, lambda: False):
                    with lock:
                        running += 1
                        most = max(most, running)
                    time.sleep(0.01)
                    with lock:
                        running -= 1
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert most == 2
    assert kept.counts([engine]) == {engine: (0, 0)}


def test_a_turn_that_does_not_come_says_why_and_leaves_the_line(kept: Slots, engine: int) -> None:
    kept.ask(engine, 1, "a")
    with pytest.raises(TryLater, match="busy with 1"), turn(kept, engine, 1, 0.2, lambda: False):
        pass
    with pytest.raises(TryLater, match="stopped"), turn(kept, engine, 1, 60, lambda: True):
        pass
    assert kept.counts([engine]) == {engine: (1, 0)}


def test_a_long_answer_keeps_its_ticket(kept: Slots, engine: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "TTL_S", 0.6)
    with turn(kept, engine, 1, 5, lambda: False):
        time.sleep(1.5)
        assert not kept.ask(engine, 1, "waits")
    assert kept.ask(engine, 1, "waits")


def test_without_redis_tickets_are_rows_that_run_out(engine: int) -> None:
    DatabaseSlots().ask(engine, 1, "a")
    ticket: Any = EngineTicket.objects.get()
    assert ticket.until > timezone.now()


def test_a_renewal_that_fails_once_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "TTL_S", 0.15)
    asked: list[str] = []
    thrice = threading.Event()

    class Away(DatabaseSlots):
        def ask(self, engine_id: int, ceiling: int, holder: str) -> bool:
            asked.append(holder)
            if len(asked) == 4:
                thrice.set()
            if len(asked) > 1:
                raise OperationalError("the database is away")
            return True

    with turn(Away(), 1, 1, 5.0, lambda: False):
        assert thrice.wait(10)
