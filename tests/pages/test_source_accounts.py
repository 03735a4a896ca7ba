"""The account of a source is on the rollout's page, in JSON and in its bundle, and times come out as they came in."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from typing import Any

import pytest
from django.test import Client

from harnesslab.actions.imports.importing import ImportResult, import_unit
from harnesslab.actions.instance_key import instance_signer
from harnesslab.formats import bundle
from harnesslab.formats.reading.inputs import InputFile, Unit
from harnesslab.queries.bundles import bundle_of

pytestmark = pytest.mark.django_db


def brought(data: bytes, name: str = "run.json") -> ImportResult:
    return import_unit(Unit(name, {name: InputFile.of_bytes(name, data)}))


def simulation(cost: float = 0.5, **more: Any) -> bytes:
    turn = {"role": "assistant", "content": "hi", "usage": {"prompt_tokens": 9, "completion_tokens": 1}, "cost": 0.5}
    return json.dumps(
        {
            "task_id": "t",
            "trial": 0,
            "reward_info": {"reward": 1.0},
            "termination_reason": "user_stop",
            "start_time": "2026-07-01T10:00:00",
            "end_time": "2026-07-01T10:00:09+02:00",
            "agent_cost": cost,
            "messages": [turn],
            **more,
        }
    ).encode()


def test_a_shortfall_makes_the_import_partial_and_is_shown_everywhere(as_viewer: Client) -> None:
    result = brought(simulation(cost=0.75))
    said = "cost: the source states 0.75, 0.5 stored"
    assert result.status == "partial"
    assert result.reason.startswith(f"short of its own totals: rollout 0: {said}")
    assert {line["what"]: line["short"] for line in result.balance} == {
        "messages": False, "cost": True, "verdict": False
    }  # fmt: skip
    (pk,) = result.rollouts
    page = as_viewer.get(f"/rollouts/{pk}/").content.decode()
    assert said in page
    assert "It began at 2026-07-01T10:00:00 by its source, no zone stated." in page
    assert "It ended at 2026-07-01T10:00:09+02:00 by its source." in page
    account = as_viewer.get(f"/api/v1/rollouts/{pk}").json()["account"]
    assert {row["what"]: (row["total"], row["stored"], row["short"]) for row in account["balance"]}["cost"] == (
        0.75, 0.5, True
    )  # fmt: skip
    with zipfile.ZipFile(BytesIO(bundle_of(pk, instance_signer()))) as archive:
        assert said.split(":")[0] in archive.read("balance.json").decode()


def test_what_agrees_is_imported_and_says_so(as_viewer: Client) -> None:
    result = brought(simulation())
    assert (result.status, [line["short"] for line in result.balance]) == ("imported", [False] * 3)
    page = as_viewer.get(f"/rollouts/{result.rollouts[0]}/").content.decode()
    assert "What is stored agrees with the source" in page


def test_times_come_out_of_an_export_as_they_came_in() -> None:
    result = brought(simulation())
    data = bundle_of(result.rollouts[0], instance_signer())
    with zipfile.ZipFile(BytesIO(data)) as archive:
        header = json.loads(archive.read("rollout.json"))
    assert (header["started_at"], header["ended_at"]) == ("2026-07-01T10:00:00", "2026-07-01T10:00:09+02:00")
    assert bundle.verify(data).case == "t"


def test_a_bundle_with_times_of_its_own_is_read_again() -> None:
    result = brought(simulation())
    data = bundle_of(result.rollouts[0], instance_signer())
    again = brought(data, "out.zip")
    assert (again.status, again.reason) == ("duplicate", "this rollout is already here")


def test_an_integer_of_any_length_is_imported_shown_and_exported(as_viewer: Client) -> None:
    digits = "9" * 5000
    opening = '{"rollout": {"schema": "harnesslab.trace/1", "case": "c", "outcome": "solved"}}'
    call = '{"kind": "tool_call", "name": "add", "arguments": {"n": %s}, "result": %s}'
    result = brought(f"{opening}\n{call % (digits, digits)}\n".encode(), "run.jsonl")
    assert (result.status, result.reason) == ("imported", "")
    (pk,) = result.rollouts
    assert digits[:3000] in as_viewer.get(f"/rollouts/{pk}/?event=1").content.decode()
    assert digits in as_viewer.get(f"/rollouts/{pk}/events/1/part/?name=result").content.decode()
    assert bundle.verify(bundle_of(pk, instance_signer())).events == 3


def test_damaged_events_are_named_on_the_page(as_viewer: Client) -> None:
    lines = [{"rollout": {"schema": "harnesslab.trace/1", "case": "c", "outcome": "solved"}}]
    data = json.dumps(lines[0]).encode() + b'\n{"kind": "user_turn", "content": "caf\xe9"}\n'
    result = brought(data, "run.jsonl")
    assert result.status == "imported"
    assert "e9 in content, character 3" in result.reason
    page = as_viewer.get(f"/rollouts/{result.rollouts[0]}/")
    assert page.status_code == 200
    assert '<a href="?event=1">event 2</a>' in page.content.decode()
    assert as_viewer.get(f"/api/v1/rollouts/{result.rollouts[0]}").json()["account"]["damaged"] == [1]
