"""Values that no column expects: imported as far as they make sense, or left out with a sentence; never a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from harnesslab.accounts.models import User
from harnesslab.actions.imports.importing import import_unit
from harnesslab.actions.instance_key import instance_signer
from harnesslab.formats import bundle
from harnesslab.formats.native import importer as native
from harnesslab.queries.bundles import bundle_of
from tests.actions.imports.test_imports import unit

pytestmark = pytest.mark.django_db
NAN, INFINITE = float("nan"), float("inf")
HEADERS: list[dict[str, Any]] = [
    {"trial": 2**31},
    {"trial": 2**70},
    {"trial": -1},
    {"reward": NAN},
    {"reward": INFINITE},
    {"reward": 1e308},
    {"budgets": {"wall": INFINITE, "cost": NAN}},
    {"budgets": {"a\x00b": 1.0, "\ud800": 2.0}},
    {"case": "a\x00b", "project": "p\x00", "panel": "\ud800", "experiment": "e\x00", "model": "m\x00\udfff"},
    {"case": "", "project": "", "tags": ["", "\x00", "\ud83d", "t" * 5000]},
    {"case": "c" * 100_000, "harness": "h" * 100_000, "missing": "m" * 100_000},
    {"started_at": "0001-01-01T00:00:00Z", "ended_at": "9999-12-31T23:59:59Z"},
    {"facts": {"a\x00": "\udcb2", "nan": NAN, "big": 2**80, "literal": "\\u0000"}},
    {"conditions": {"seeds.seed": 2**63, "sampling.temperature": NAN, "sampling.other": {"\ud800": INFINITE}}},
]
EVENTS: list[dict[str, Any]] = [
    {"kind": "model_call", "step": 2**31, "messages": [], "text": "x"},
    {"kind": "model_call", "step": 2**70, "messages": [], "text": "x"},
    {"kind": "model_call", "step": -5, "messages": [], "text": "x"},
    {"kind": "model_call", "messages": [], "text": "x", "usage": {"input": 2**62, "output": 2**62}},
    {"kind": "model_call", "messages": [], "text": "x", "usage": {"input": 2**80, "output": -1}},
    {"kind": "model_call", "messages": [{"role": "user", "content": "\x00\ud800"}], "text": "half \ud83d"},
    {"kind": "model_call", "messages": [None, 1, "x", [], {"role": 5, "content": {"a": NAN}}], "text": "x"},
    {
        "kind": "model_call",
        "messages": [],
        "settings": {"seed": 2**63, "temperature": NAN},
        "latency": NAN,
        "at": INFINITE,
    },
    {"kind": "model_call", "messages": [], "logprobs": [NAN, -INFINITE], "token_ids": [2**40, -1]},
    {"kind": "tool_call", "name": "t", "arguments": '{"a":', "result": "\udcb2 ok\x00"},
    {"kind": "tool_call", "name": "", "arguments": [1], "result": {"loss": NAN, "x": INFINITE, "y": -INFINITE}},
    {"kind": "tool_call", "name": "a\x00b", "raw": "", "arguments": None, "exit_code": 2**70},
    {"kind": "tool_call", "name": "t", "arguments": "bare", "result": "x" * 2**20, "error": "bad \x00"},
    {"kind": "verification", "passed": True, "reward": NAN, "scores": {"a": INFINITE}, "tests": []},
    {"kind": "harness_action", "name": "h\x00", "detail": {"\x00": "\ud800"}},
    {"kind": "user_turn", "content": {"deep": [[[{}]]]}},
]


def rollout(header: dict[str, Any], *events: dict[str, Any]) -> str:
    opening = {"rollout": {"schema": native.SCHEMA, "case": "c", "outcome": "solved", **header}}
    return "\n".join(map(json.dumps, (opening, *events))) + "\n"


def looked_at(user: User, rollouts: list[int]) -> None:
    """Ask every page and route of the rollouts."""
    client = Client()
    client.force_login(user)
    for pk in rollouts:
        for address in (f"/rollouts/{pk}/", f"/rollouts/{pk}/events/0/", f"/rollouts/{pk}/events/1/", "/rollouts/"):
            assert client.get(address).status_code == 200, address
        for address in ("", "/events", "/events/1"):
            answer = client.get(f"/api/v1/rollouts/{pk}{address}")
            assert answer.status_code == 200, address
            json.loads(answer.content, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
        compared = client.get(f"/api/v1/comparisons?a={rollouts[0]}&b={pk}")
        assert compared.status_code == 200
        assert client.get(f"/compare/?a={rollouts[0]}&b={pk}").status_code == 200
        assert bundle.verify(bundle_of(pk, instance_signer())).events >= 2


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: ",".join(header))
def test_facts_of_a_rollout(viewer: User, header: dict[str, Any]) -> None:
    call = {"kind": "model_call", "messages": [], "text": "x"}
    result = import_unit(unit(rollout({}, call) + rollout(header, call)))
    assert result.status in ("imported", "partial"), result.reason
    assert "failed with" not in result.reason
    looked_at(viewer, result.rollouts)


@pytest.mark.parametrize("number", range(len(EVENTS)))
def test_events_of_a_rollout(viewer: User, number: int) -> None:
    call = {"kind": "model_call", "messages": [], "text": "y"}
    result = import_unit(unit(rollout({}, call) + rollout({}, EVENTS[number], call)))
    assert result.status in ("imported", "partial"), result.reason
    looked_at(viewer, result.rollouts)


def test_neighbours_of_odd_arguments_are_shown_and_compared(viewer: User) -> None:
    calls = [{"kind": "tool_call", "name": "t", "raw": raw} for raw in ('"bare"', '{"a":', "[1]", "")]
    a, b = import_unit(unit(rollout({}, *calls) + rollout({}, *reversed(calls)))).rollouts
    looked_at(viewer, [a, b])
