"""Importing never doubles, never loses what is whole, and says in one sentence what it leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from harnesslab.actions.imports.importing import import_unit
from harnesslab.actions.instance_key import instance_signer
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Recording
from harnesslab.formats.native import importer as native
from harnesslab.formats.reading.inputs import InputFile, Unit
from harnesslab.queries.bundles import bundle_of
from harnesslab.store.models import Event, Rollout, SourceFile
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def unit(text: str | bytes, name: str = "runs.jsonl") -> Unit:
    data = text.encode() if isinstance(text, str) else text
    return Unit(name, {name: InputFile.of_bytes(name, data)})


def lines(rollouts: int = 2) -> str:
    written: list[dict[str, object]] = []
    for trial in range(rollouts):
        written.append({"rollout": {"schema": native.SCHEMA, "case": "c", "trial": trial, "outcome": "solved"}})
        written.append({"kind": "model_call", "messages": [{"role": "user", "content": "go"}], "text": f"done {trial}"})
        written.append({"kind": "verification", "passed": True, "reward": 1})
    return "\n".join(map(json.dumps, written)) + "\n"


def test_rollouts_are_stored_with_their_source() -> None:
    result = import_unit(unit(lines()))
    assert (result.status, result.format, len(result.rollouts)) == ("imported", "harnesslab", 2)
    assert Rollout.objects.get(pk=result.rollouts[1]).position == 1


def test_the_same_bytes_under_another_name_are_a_duplicate() -> None:
    first = import_unit(unit(lines()))
    second = import_unit(unit(lines(), "copy.jsonl"))
    assert (second.status, second.rollouts) == ("duplicate", first.rollouts)
    assert "runs.jsonl" in second.reason
    assert Rollout.objects.count() == 2


def test_what_is_whole_of_a_damaged_file_is_imported_and_the_rest_is_listed() -> None:
    result = import_unit(unit(lines() + '{"kind": "tool_call", "name": '))
    assert result.status == "partial"
    assert len(result.rollouts) == 2
    assert result.skipped[0][0] == "line 7"
    assert SourceFile.objects.get().skipped == [list(item) for item in result.skipped]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "binary"),
        (b"{}", "no known trace format"),
        (b'{"a": [1, 2', "ends inside a value"),
        (b"[" * 100_000, "JSON"),
        (b"# Notes\n\nSome text.", "Markdown"),
    ],
)
def test_what_can_not_be_read_is_refused_with_one_sentence(content: bytes, said: str) -> None:
    result = import_unit(unit(content, "odd.json"))
    assert result.status == "refused"
    assert "odd.json" in result.reason
    assert said in result.reason
    assert "\n" not in result.reason
    assert not SourceFile.objects.exists()


def test_an_import_that_was_killed_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = native.read

    def dies(given: Unit, report: object) -> Iterator[Recording]:
        yield next(iter(whole(given, report)))  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(native, "read", dies)
    with pytest.raises(KeyboardInterrupt):
        import_unit(unit(lines(3)))
    assert Rollout.objects.count() == 1
    monkeypatch.setattr(native, "read", whole)
    result = import_unit(unit(lines(3)))
    assert (result.status, len(result.rollouts)) == ("imported", 3)
    assert Rollout.objects.count() == 3


def test_a_trial_that_can_not_be_sealed_is_left_out_and_the_others_stay() -> None:
    deep: object = "x"
    for _ in range(150):
        deep = [[deep]]
    broken = {"kind": "tool_call", "name": "run", "arguments": deep}
    text = lines(1) + json.dumps({"rollout": {"schema": native.SCHEMA, "case": "deep", "outcome": "solved"}}) + "\n"
    result = import_unit(unit(text + json.dumps(broken) + "\n"))
    assert result.status == "partial"
    assert len(result.rollouts) == 1
    assert "nested" in result.skipped[0][1]


def test_a_project_named_at_the_import_wins() -> None:
    result = import_unit(unit(lines(1)), project="mine")
    assert Rollout.objects.get(pk=result.rollouts[0]).project.name == "mine"


def test_an_own_bundle_is_recognised_as_what_is_already_here() -> None:
    row = store_recording(recording(), None)
    data = bundle_of(row.pk, instance_signer())
    result = import_unit(unit(data, "rollout.zip"))
    assert (result.status, result.rollouts) == ("duplicate", [row.pk])
    assert Rollout.objects.count() == 1


def test_a_bundle_of_another_instance_gives_the_same_digests(admin: object) -> None:
    row = store_recording(recording(facts={"note": "a\x00b"}), None)
    data = bundle_of(row.pk, instance_signer())
    seals = [bytes(seal) for seal in Event.objects.order_by("key").values_list("seal", flat=True)]
    from harnesslab.actions.annotations import delete_rollout

    delete_rollout(admin, row.pk, "moved")  # type: ignore[arg-type]
    result = import_unit(unit(data, "rollout.zip"))
    again = Rollout.objects.get(pk=result.rollouts[0])
    assert (again.manifest_id, bytes(again.head or b"")) == (row.manifest_id, seals[-1])
    assert [bytes(seal) for seal in Event.objects.order_by("key").values_list("seal", flat=True)] == seals
    assert bytes(again.path or b"") == bytes(row.path or b"")


def test_an_importer_that_fails_unexpectedly_refuses_its_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(given: Unit, report: object) -> Iterator[Recording]:
        raise KeyError("oops")

    monkeypatch.setattr(native, "read", broken)
    result = import_unit(unit(lines()))
    assert (result.status, result.rollouts) == ("refused", [])
    assert "KeyError" in result.reason
    assert not SourceFile.objects.exists()


def test_what_was_read_before_a_fault_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = native.read

    def faulty(given: Unit, report: object) -> Iterator[Recording]:
        yield next(iter(whole(given, report)))  # type: ignore[arg-type]
        raise FormatRefused("the member is damaged", where="b.json")

    monkeypatch.setattr(native, "read", faulty)
    result = import_unit(unit(lines()))
    assert (result.status, len(result.rollouts)) == ("partial", 1)
    assert "b.json: the member is damaged" in result.reason
