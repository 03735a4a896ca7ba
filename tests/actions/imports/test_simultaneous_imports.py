"""The same file imported by several at a time: one stores it, the others find it, on either database."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from harnesslab.actions.imports.importing import ImportResult, import_unit
from harnesslab.store.locks import held
from harnesslab.store.models import Rollout, SourceFile
from tests.actions.imports.test_imports import lines, unit

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 4


def test_the_same_bytes_are_stored_once_and_the_losers_say_duplicate() -> None:
    together = threading.Barrier(AT_ONCE)

    def one(_: int) -> ImportResult:
        together.wait()
        try:
            return import_unit(unit(lines(20)))
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(one, range(AT_ONCE)))
    assert sorted(result.status for result in results) == ["duplicate"] * (AT_ONCE - 1) + ["imported"]
    assert len({tuple(result.rollouts) for result in results}) == 1
    assert (Rollout.objects.count(), SourceFile.objects.count()) == (20, 1)


def test_different_files_of_the_same_cases_do_not_hinder_each_other() -> None:
    together = threading.Barrier(AT_ONCE)

    def one(number: int) -> ImportResult:
        together.wait()
        try:
            return import_unit(unit(lines(20) + "\n" * number, f"{number}.jsonl"))
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(one, range(AT_ONCE)))
    assert [result.status for result in results] == ["imported"] * AT_ONCE
    assert Rollout.objects.count() == 20 * AT_ONCE


def test_a_lock_is_let_go_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), held("x"):
        raise ZeroDivisionError
    with held("x"):
        pass
