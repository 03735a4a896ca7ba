"""A bundle verifies as a whole; any changed byte of any member shows, and the first wrong thing is named."""

from __future__ import annotations

import io
import json
import zipfile

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from harnesslab.core.canonical import bytes_digest, canonical_bytes
from harnesslab.core.errors import HarnessLabError, SealBroken
from harnesslab.core.trace import packing, seals
from harnesslab.core.trace.trace import Trace
from harnesslab.formats import bundle
from harnesslab.formats.native import importer as native
from harnesslab.formats.reading.inputs import InputFile, Report, Unit
from harnesslab.formats.registry import recognise
from tests.recordings import recording

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SIGNER = bundle.Signer(KEY.public_key().public_bytes_raw().hex(), KEY.sign)


@pytest.fixture
def data() -> bytes:
    made = recording(commands=["ls", "cat ü\x00.txt"], results={1: "\udcb2"})
    header = native.Header(schema=native.SCHEMA, case=made.case, outcome=made.outcome, trial=3, facts={"n": 1})
    report = {"comparison-1-2.json": {"identical": True}}
    return bundle.write(header, made.manifest, made.trace, seals.seals(made.trace), SIGNER, report)


def rewritten(data: bytes, changes: dict[str, bytes | None]) -> bytes:
    """The same archive with members replaced, added, or (None) left out."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in [*old.namelist(), *(changes.keys() - set(old.namelist()))]:
            content = changes[name] if name in changes else old.read(name)
            if content is not None:
                new.writestr(name, content)
    return buffer.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_bundle_verifies_and_says_what_it_is(data: bytes) -> None:
    found = bundle.verify(data)
    assert (found.case, found.key) == ("case-1", SIGNER.public_key)


def balanced() -> bytes:
    made = recording(commands=["ls"])
    totals = {"input": 100, "output": 1}
    kept = {"stated": totals, "balance": [{"what": "input tokens", "total": 100, "stored": 40}]}
    last = msgspec.structs.replace(made.trace.events[-1], extra=kept)
    trace = Trace((*made.trace.events[:-1], last), made.trace.payloads, made.trace.digests)
    header = native.Header(schema=native.SCHEMA, case=made.case, outcome=made.outcome)
    return bundle.write(header, made.manifest, trace, seals.seals(trace), SIGNER)


def signed(data: bytes, changes: dict[str, bytes], **index: object) -> bytes:
    """The bundle with other members and another list, which whoever holds the key could sign."""
    kept = {**members(data), **changes}
    digests = {name: bytes_digest(body) for name, body in kept.items() if name not in ("bundle.json", "signature.json")}
    listed = canonical_bytes({**json.loads(kept["bundle.json"]), "members": digests, **index})
    said = {"algorithm": "ed25519", "public_key": SIGNER.public_key, "signature": SIGNER.sign(listed).hex()}
    return rewritten(data, {**changes, "bundle.json": listed, "signature.json": canonical_bytes(said)})


def test_the_balance_is_an_optional_member_that_agrees_with_the_trace(data: bytes) -> None:
    assert "balance.json" not in members(data)
    found = balanced()
    assert bundle.verify(found).case
    assert json.loads(members(found)["balance.json"]) == [
        {"what": "input tokens", "total": 100, "stored": 40, "short": True}
    ]
    with pytest.raises(SealBroken, match=r"balance\.json: it is not what the sealed trace says"):
        bundle.verify(signed(found, {"balance.json": b"[]"}))


def test_an_optional_member_of_a_later_version_is_taken_when_it_is_named(data: bytes) -> None:
    extra = {"pictures/1.png": b"p"}
    assert bundle.verify(signed(data, extra, optional=["pictures/1.png"])).case
    with pytest.raises(SealBroken, match="not named as optional"):
        bundle.verify(signed(data, extra))
    with pytest.raises(SealBroken, match="optional member is missing"):
        bundle.verify(signed(data, {}, optional=["pictures/1.png"]))


def test_a_bundle_of_the_first_version_still_verifies(data: bytes) -> None:
    index = {name: value for name, value in json.loads(members(data)["bundle.json"]).items() if name != "optional"}
    older = signed(data, {"bundle.json": canonical_bytes({**index, "schema": "harnesslab.bundle/1"})})
    assert json.loads(members(older)["bundle.json"])["schema"] == "harnesslab.bundle/1"
    assert bundle.verify(older).case


def test_it_is_the_same_bytes_each_time(data: bytes) -> None:
    made = recording(commands=["ls", "cat ü\x00.txt"], results={1: "\udcb2"})
    header = native.Header(schema=native.SCHEMA, case=made.case, outcome=made.outcome, trial=3, facts={"n": 1})
    report = {"comparison-1-2.json": {"identical": True}}
    assert bundle.write(header, made.manifest, made.trace, seals.seals(made.trace), SIGNER, report) == data


def test_any_flipped_byte_of_any_member_is_detected(data: bytes) -> None:
    for name, content in members(data).items():
        for at in range(0, len(content), max(1, len(content) // 40)):
            changed = bytearray(content)
            changed[at] ^= 1
            with pytest.raises(SealBroken):
                bundle.verify(rewritten(data, {name: bytes(changed)}))


def test_any_flipped_byte_of_the_file_is_detected_or_harmless(data: bytes) -> None:
    """A flip in the archive's own bookkeeping may leave every member as it was; then nothing was changed."""
    original = members(data)
    for at in range(0, len(data), max(1, len(data) // 300)):
        changed = bytearray(data)
        changed[at] ^= 0x10
        try:
            bundle.verify(bytes(changed))
        except HarnessLabError:
            continue
        assert members(bytes(changed)) == original


@pytest.mark.parametrize(
    "name", ["manifest.json", "seals.txt", "trace.jsonl", "chunks/0000.zst", "README.md", "rollout.json"]
)
def test_a_missing_member_is_named(data: bytes, name: str) -> None:
    with pytest.raises(SealBroken, match="missing") as caught:
        bundle.verify(rewritten(data, {name: None}))
    assert caught.value.where == name


def test_an_added_member_is_named(data: bytes) -> None:
    with pytest.raises(SealBroken, match="not in the list"):
        bundle.verify(rewritten(data, {"reports/extra.json": b"{}"}))


def test_a_list_resealed_by_another_key_is_told_by_the_key(data: bytes) -> None:
    other = Ed25519PrivateKey.from_private_bytes(bytes(32))
    signer = bundle.Signer(other.public_key().public_bytes_raw().hex(), other.sign)
    made = recording()
    header = native.Header(schema=native.SCHEMA, case=made.case, outcome=made.outcome)
    forged = bundle.write(header, made.manifest, made.trace, seals.seals(made.trace), signer)
    assert bundle.verify(forged).key != SIGNER.public_key


def test_a_cut_archive_is_refused(data: bytes) -> None:
    with pytest.raises(HarnessLabError):
        bundle.verify(data[: len(data) // 2])


def test_events_that_were_resealed_without_their_seals_show() -> None:
    made, other = recording(), recording(results={1: "altered"})
    header = native.Header(schema=native.SCHEMA, case=made.case, outcome=made.outcome)
    forged = bundle.write(header, made.manifest, other.trace, seals.seals(made.trace), SIGNER)
    with pytest.raises(SealBroken, match="not the one that was sealed"):
        bundle.verify(forged)


def test_a_bundle_imports_as_the_rollout_it_is(data: bytes) -> None:
    unit = Unit("b.zip", {"b.zip": InputFile.of_bytes("b.zip", data)})
    found = recognise(unit)
    (again,) = found.importer.read(unit, Report())
    made = recording(commands=["ls", "cat ü\x00.txt"], results={1: "\udcb2"})
    assert seals.seals(again.trace) == seals.seals(made.trace)
    assert (again.manifest.digest, again.trial, again.facts) == (made.manifest.digest, 3, {"n": 1})


def test_the_readable_trace_imports_too(data: bytes) -> None:
    text = members(data)["trace.jsonl"]
    unit = Unit("trace.jsonl", {"trace.jsonl": InputFile.of_bytes("trace.jsonl", text)})
    (again,) = recognise(unit).importer.read(unit, Report())
    made = recording(commands=["ls", "cat ü\x00.txt"], results={1: "\udcb2"})
    assert seals.seals(again.trace) == seals.seals(made.trace)


def test_many_chunks_make_one_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "CHUNK_BYTES", 300)
    made = recording(commands=[f"command {number}" for number in range(12)])
    header = native.Header(schema=native.SCHEMA, case=made.case, outcome=made.outcome)
    data = bundle.write(header, made.manifest, made.trace, seals.seals(made.trace), SIGNER)
    assert sum(name.startswith("chunks/") for name in members(data)) > 3
    assert bundle.verify(data).events == len(made.trace.events)


def test_chunks_are_read_by_number() -> None:
    names = [f"chunks/{number:04d}.zst" for number in (0, 999, 1000, 1001, 9999, 10_000, 10_001)]
    assert sorted(names, key=bundle.chunk_number) == names
    assert sorted(names) != names
