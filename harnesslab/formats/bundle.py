"""Our export: one rollout with everything that is needed to verify and re-import it, as a zip file.

Members: `manifest.json` (canonical bytes), `rollout.json` (its facts), `chunks/NNNN.zst` (events and payloads as
stored), `seals.txt` (one a line), `trace.jsonl` (the same trace in the native format, for people and other
tools), `reports/` (comparisons chosen), `README.md`, and the optional ones of `bundle_members`; `bundle.json` lists
the digest of each, and `signature.json` signs that list with the instance's key. A changed byte of any member shows.
Who signed is another question: the key's fingerprint must be known from elsewhere.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from harnesslab.core.canonical import JSON, bytes_digest, canonical_bytes, parse
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import HarnessLabError, InvalidValue, SealBroken
from harnesslab.core.natural import natural
from harnesslab.core.running.rollout import Recording, Source
from harnesslab.core.trace import packing, seals
from harnesslab.core.trace.events import AnyEvent, RolloutStarted
from harnesslab.core.trace.trace import Trace, rebuild
from harnesslab.core.versions import Versions
from harnesslab.formats.bundle_members import check_optional, optional_members, readme
from harnesslab.formats.native import importer as native
from harnesslab.formats.reading.archives import Archive, open_archive
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.sniff import Shape

NAME = "bundle"


@dataclass(frozen=True, slots=True)
class Verified:
    """What a bundle that verifies says of itself."""

    manifest: str
    head: str
    events: int
    case: str
    key: str
    """The signing public key, hexadecimal."""


Whole: TypeAlias = tuple[Verified, native.Header, Manifest, Trace]
"""What a bundle that verifies holds."""


@dataclass(frozen=True, slots=True)
class Signer:
    """A public key (hexadecimal) and the function that signs with its private key."""

    public_key: str
    sign: Callable[[bytes], bytes]


def write(
    header: native.Header,
    manifest: Manifest,
    trace: Trace,
    recorded: Sequence[bytes],
    signer: Signer,
    reports: Mapping[str, JSON] | None = None,
) -> bytes:
    """Return the bundle of a rollout; `recorded` are its seals, `reports` comparisons by file name."""
    members: dict[str, bytes] = {
        "manifest.json": manifest.canonical(),
        "rollout.json": canonical_bytes(msgspec.to_builtins(header)),
        "seals.txt": "".join(f"{seal.hex()}\n" for seal in recorded).encode(),
        "trace.jsonl": trace_lines(header, manifest, trace),
    }
    # every payload inside: there is no store beside a bundle where shared ones could be kept
    for chunk in packing.pack(trace.events, trace.payloads):
        members[f"chunks/{chunk.number:04d}.zst"] = chunk.data
    for name, report in (reports or {}).items():
        members[f"reports/{name}"] = canonical_bytes(report)
    optional = optional_members(trace)
    members |= optional
    head = recorded[-1].hex()
    members["README.md"] = readme(header, manifest.digest, head, len(trace.events), signer.public_key)
    index = canonical_bytes(
        {
            "schema": BUNDLES.schema(BUNDLES.newest),
            "optional": sorted(optional),
            "case": header.case,
            "events": len(trace.events),
            "manifest": manifest.digest,
            "head": head,
            "members": {name: bytes_digest(data) for name, data in members.items()},
        }
    )
    signature = canonical_bytes(
        {"algorithm": "ed25519", "public_key": signer.public_key, "signature": signer.sign(index).hex()}
    )
    return _zip({"bundle.json": index, "signature.json": signature, **members})


def trace_lines(header: native.Header, manifest: Manifest, trace: Trace) -> bytes:
    """Return the trace as native JSON lines, complete with its manifest."""
    whole = msgspec.structs.replace(header, manifest=dict(manifest.to_json()), conditions={})
    return b"".join(canonical_bytes(line) + b"\n" for line in native.lines(whole, trace))


def verify(data: bytes, name: str = "bundle") -> Verified:
    """Check a bundle whole; raises `SealBroken` naming the first thing that is wrong."""
    return _verified(_open(data, name))[0]


def recognises(shape: Shape) -> bool:
    """A zip file with a `bundle.json`."""
    if shape.kind != "zip":
        return False
    try:
        return "bundle.json" in open_archive(shape.unit.only.read(), shape.unit.name).members
    except HarnessLabError:
        return False


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the bundle's rollout once all of it has been verified."""
    _, header, manifest, trace = _verified(_open(unit.only.read(), unit.name))
    yield native.recording(header, manifest, trace, header.outcome, Source(unit.name, unit.digest(), NAME))


def _open(data: bytes, name: str) -> Archive:
    archive = open_archive(data, name)
    if not archive.whole:
        raise SealBroken("the archive is cut off", where=name)
    if "bundle.json" not in archive.members:
        raise SealBroken("there is no bundle.json: not a bundle", where=name)
    return archive


def _verified(archive: Archive) -> Whole:
    index = _object(archive, "bundle.json")
    try:
        rules = BUNDLES.of(index.get("schema"))
    except InvalidValue as error:
        raise SealBroken(error.what, where="bundle.json", hint=error.hint) from None
    return rules(archive, index)


def _verified_1(archive: Archive, index: Mapping[str, JSON]) -> Whole:
    """Verify by the rules of bundle/1: signature, members, manifest, facts, chunks and seals, readable trace."""
    key = _check_signature(archive)
    _check_members(archive, index)
    manifest = Manifest.from_json(parse(_member(archive, "manifest.json")))
    if manifest.digest != index.get("manifest"):
        raise SealBroken("the manifest is not the one that was sealed", where="manifest.json")
    header = _header(archive)
    trace = _trace(archive)
    _check_trace(archive, index, header, manifest, trace)
    verified = Verified(manifest.digest, str(index["head"]), len(trace.events), header.case, key)
    return verified, header, manifest, trace


def _verified_2(archive: Archive, index: Mapping[str, JSON]) -> Whole:
    """Verify by the rules of bundle/2: those of bundle/1, and the optional members."""
    whole = _verified_1(archive, index)
    names = sorted(archive.members.keys() - {"bundle.json", "signature.json"})
    check_optional(names, archive.read, index, whole[3])
    return whole


BUNDLES: Versions[Callable[[Archive, Mapping[str, JSON]], Whole]] = Versions(
    "harnesslab.bundle", {1: _verified_1, 2: _verified_2}
)
"""The rules that a bundle is verified by, by the number of its schema."""


def _check_signature(archive: Archive) -> str:
    signature = _object(archive, "signature.json")
    key, value = str(signature.get("public_key", "")), str(signature.get("signature", ""))
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(
            bytes.fromhex(value), _member(archive, "bundle.json")
        )
    except (InvalidSignature, ValueError):
        raise SealBroken(
            "the signature doesn't fit the list of members", where="bundle.json or signature.json"
        ) from None
    # no list names this member, so that a byte that isn't checked here could be changed without showing
    if signature != {"algorithm": "ed25519", "public_key": key, "signature": value}:
        raise SealBroken("more or less than a signature", where="signature.json")
    if canonical_bytes(signature) != _member(archive, "signature.json"):
        raise SealBroken("not in canonical form", where="signature.json")
    return key


def _check_members(archive: Archive, index: Mapping[str, JSON]) -> None:
    listed = index.get("members")
    if not isinstance(listed, Mapping):
        raise SealBroken("no list of members", where="bundle.json")
    present = archive.members.keys() - {"bundle.json", "signature.json"}
    for name in sorted(listed.keys() | present):
        if name not in present:
            raise SealBroken("the member is missing", where=name)
        if name not in listed:
            raise SealBroken("the member is not in the list", where=name)
        if bytes_digest(_member(archive, name)) != listed[name]:
            raise SealBroken("the content is not what was exported", where=name)


def _check_trace(
    archive: Archive, index: Mapping[str, JSON], header: native.Header, manifest: Manifest, trace: Trace
) -> None:
    recorded = [bytes.fromhex(line) for line in _member(archive, "seals.txt").decode().split()]
    seals.verify(trace, recorded)
    if not recorded or recorded[-1].hex() != index.get("head"):
        raise SealBroken("the last seal is not the head", where="seals.txt")
    first = trace.events[0]
    if isinstance(first, RolloutStarted) and first.manifest and first.manifest != manifest.digest:
        raise SealBroken("the trace names another manifest", where="manifest.json")
    # the list's digest says only that the exporter put it there; people read it as the sealed trace
    if trace_lines(header, manifest, trace) != _member(archive, "trace.jsonl"):
        raise SealBroken("the readable trace is not the sealed one", where="trace.jsonl")


def _trace(archive: Archive) -> Trace:
    events: list[AnyEvent] = []
    payloads: list[JSON] = []
    for name in sorted((member for member in archive.members if member.startswith("chunks/")), key=chunk_number):
        chunk = packing.open_chunk(_member(archive, name))
        if chunk.absent:
            raise SealBroken("a payload is kept elsewhere", where=name)
        events += chunk.events
        payloads += chunk.payloads
    if not events:
        raise SealBroken("there are no events", where="chunks/")
    return rebuild(events, payloads)


def chunk_number(member: str) -> tuple[int, str]:
    """Order chunks by number: as text, the ten-thousandth would come after the thousandth."""
    return natural(member.removeprefix("chunks/").removesuffix(".zst")) or 0, member


def _header(archive: Archive) -> native.Header:
    try:
        return native.header_from(parse(_member(archive, "rollout.json")))
    except (msgspec.ValidationError, InvalidValue, ValueError) as error:
        raise SealBroken(f"can't be read: {error}", where="rollout.json") from error


def _object(archive: Archive, name: str) -> Mapping[str, JSON]:
    try:
        value = parse(_member(archive, name))
    except ValueError as error:
        raise SealBroken(f"not valid JSON: {error}", where=name) from error
    if not isinstance(value, Mapping):
        raise SealBroken("not a JSON object", where=name)
    return value


def _member(archive: Archive, name: str) -> bytes:
    if name not in archive.members:
        raise SealBroken("the member is missing", where=name)
    return archive.read(name)


def _zip(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            info = ZipInfo(name)  # a fixed date: the same rollout gives the same bytes
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, ZIP_STORED if name.endswith(".zst") else ZIP_DEFLATED)
    return buffer.getvalue()
