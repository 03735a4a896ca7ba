"""Holds the requests to an engine at or below its ceiling, over all workers, first come first served.

A request takes a ticket, waits until it is granted, renews it while it is answered, and gives it back. A ticket
that is not renewed runs out, so that a killed worker holds none for long. With Redis the tickets are there, else in
the database.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Protocol

import redis
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from harnesslab.core.errors import TryLater
from harnesslab.store.models import Engine, EngineTicket

TTL_S = 20.0
POLL_S = 0.05
SLOWEST_POLL_S = 0.5
log = logging.getLogger(__name__)


class Slots(Protocol):
    """Tickets for the requests to engines, by the id of the engine and the random name of the holder."""

    def ask(self, engine_id: int, ceiling: int, holder: str) -> bool:
        """Take a ticket, or renew it; True once it is granted."""

    def give_back(self, engine_id: int, holder: str) -> None:
        """Give a ticket back."""

    def counts(self, engine_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return (requests being answered, requests waiting) by engine."""


class DatabaseSlots:
    """Tickets as rows; the engine's row is the lock."""

    def ask(self, engine_id: int, ceiling: int, holder: str) -> bool:
        """Take a ticket, or renew it; True once it is granted."""
        now = timezone.now()
        until = now + timedelta(seconds=TTL_S)
        with transaction.atomic():
            # PostgreSQL locks the row; SQLite's transactions begin as writers
            Engine.objects.select_for_update().filter(pk=engine_id).values_list("pk").first()
            line = list(
                EngineTicket.objects.filter(engine_id=engine_id)
                .order_by("pk")
                .values_list("holder", "granted", "until")
            )
            held = [(name, granted) for name, granted, end in line if end >= now or name == holder]
            if len(held) < len(line):
                EngineTicket.objects.filter(engine_id=engine_id, until__lt=now).exclude(holder=holder).delete()
            if (holder, True) in held:
                EngineTicket.objects.filter(holder=holder).update(until=until)
                return True
            waiting = [name for name, granted in held if not granted]
            # A free place is kept for whoever stands ahead, though this one asks first. The price of the order: a place
            # is idle for up to one poll, and for up to TTL_S where the one ahead was killed while it waited.
            ahead = waiting.index(holder) if holder in waiting else len(waiting)
            granted = ahead < ceiling - (len(held) - len(waiting))
            if holder in waiting:
                EngineTicket.objects.filter(holder=holder).update(until=until, granted=granted)
            else:
                EngineTicket.objects.create(engine_id=engine_id, holder=holder, until=until, granted=granted)
            return granted

    def give_back(self, engine_id: int, holder: str) -> None:
        """Give a ticket back."""
        EngineTicket.objects.filter(holder=holder, engine_id=engine_id).delete()

    def counts(self, engine_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return (requests being answered, requests waiting) by engine."""
        found = dict.fromkeys(engine_ids, (0, 0))
        held = EngineTicket.objects.filter(engine_id__in=engine_ids, until__gte=timezone.now())
        for engine_id, granted in held.values_list("engine_id", "granted"):
            running, waiting = found[engine_id]
            found[engine_id] = (running + granted, waiting + (not granted))
        return found


_PURGE = """
local now = redis.call('TIME'); local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local holders, order, granted = KEYS[1], KEYS[2], KEYS[3]
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', holders, '-inf', '(' .. ms)) do
  if gone ~= ARGV[1] then
    redis.call('ZREM', holders, gone); redis.call('ZREM', order, gone); redis.call('SREM', granted, gone)
  end
end
"""
# One script, so that nothing comes between looking at the line and taking a place. The clock is Redis's own, since
# those of workers differ. A free place waits for whoever stands ahead, as in `DatabaseSlots.ask`.
_ASK = (
    _PURGE
    + """
redis.call('ZADD', holders, ms + ARGV[3], ARGV[1])
if redis.call('SISMEMBER', granted, ARGV[1]) == 1 then return 1 end
if not redis.call('ZSCORE', order, ARGV[1]) then
  redis.call('ZADD', order, redis.call('INCR', KEYS[4]), ARGV[1])
end
if redis.call('ZRANK', order, ARGV[1]) < ARGV[2] - redis.call('SCARD', granted) then
  redis.call('ZREM', order, ARGV[1]); redis.call('SADD', granted, ARGV[1])
  return 1
end
return 0
"""
)
_COUNT = _PURGE + "return {redis.call('SCARD', granted), redis.call('ZCARD', order)}"


class RedisSlots:
    """Tickets in Redis: when each runs out, the order of those that wait, and those granted."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url, socket_timeout=10)
        self._ask = self._redis.register_script(_ASK)
        self._count = self._redis.register_script(_COUNT)

    def ask(self, engine_id: int, ceiling: int, holder: str) -> bool:
        """Take a ticket, or renew it; True once it is granted."""
        return bool(self._ask(keys=self._keys(engine_id), args=[holder, ceiling, int(TTL_S * 1000)]))

    def give_back(self, engine_id: int, holder: str) -> None:
        """Give a ticket back."""
        holders, order, granted, _ = self._keys(engine_id)
        with self._redis.pipeline() as pipeline:
            pipeline.zrem(holders, holder)
            pipeline.zrem(order, holder)
            pipeline.srem(granted, holder)
            pipeline.execute()

    def counts(self, engine_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return (requests being answered, requests waiting) by engine."""
        found = {engine_id: self._count(keys=self._keys(engine_id), args=[""]) for engine_id in engine_ids}
        return {engine_id: (int(running), int(waiting)) for engine_id, (running, waiting) in found.items()}

    def _keys(self, engine_id: int) -> list[str]:
        # the database's name keeps labs apart that share one Redis
        lab = f"harnesslab:{connection.settings_dict['NAME']}:engine:{engine_id}"
        return [f"{lab}:{part}" for part in ("holders", "order", "granted", "count")]


def slots() -> Slots:
    """Return where this lab keeps its tickets."""
    url = settings.CONFIG.redis_url
    return _redis_slots(url) if url else DatabaseSlots()


@cache
def _redis_slots(url: str) -> RedisSlots:
    return RedisSlots(url)


@contextmanager
def turn(slots: Slots, engine_id: int, ceiling: int, timeout: float, stopped: Callable[[], bool]) -> Iterator[float]:
    """Wait for a request's turn, hold it, and give it back; yields the seconds waited, raises `TryLater`."""
    holder = secrets.token_hex(12)
    began = time.monotonic()
    try:
        _wait(slots, engine_id, ceiling, holder, began + timeout, stopped)
        with _renewed(slots, engine_id, ceiling, holder):
            yield time.monotonic() - began
    finally:
        # also where it was never granted: a ticket that still waits would hold up those behind it until it runs out
        slots.give_back(engine_id, holder)


def _wait(kept: Slots, engine_id: int, ceiling: int, holder: str, deadline: float, stopped: Callable[[], bool]) -> None:
    pause = POLL_S
    while not kept.ask(engine_id, ceiling, holder):
        if stopped():
            raise TryLater("stopped while waiting for the engine")
        if time.monotonic() + pause > deadline:
            raise TryLater(f"the engine was busy with {ceiling} other requests until the time was up")
        time.sleep(pause)
        pause = min(SLOWEST_POLL_S, pause * 1.3)


@contextmanager
def _renewed(kept: Slots, engine_id: int, ceiling: int, holder: str) -> Iterator[None]:
    """Renew a ticket from a thread; one that answers quickly never needs it."""
    left = threading.Event()
    timer = threading.Timer(TTL_S / 3, _renew, (kept, engine_id, ceiling, holder, left))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        left.set()
        timer.cancel()
        timer.join()


def _renew(kept: Slots, engine_id: int, ceiling: int, holder: str, left: threading.Event) -> None:
    try:
        while not left.is_set():
            try:
                # The answer isn't looked at: a request that was sent can't be called back. Where its ticket ran out and
                # was removed, this queues it anew at the end of the line, and until it is answered the engine may hold
                # one request more than its ceiling.
                kept.ask(engine_id, ceiling, holder)
            except (DatabaseError, redis.RedisError) as error:  # the next renewal may come before it runs out
                log.warning("a ticket of engine %s is not renewed: %s", engine_id, error)
                connection.close()
            left.wait(TTL_S / 3)
    finally:
        connection.close()
