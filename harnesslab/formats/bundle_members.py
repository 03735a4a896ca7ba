"""What a bundle holds beside the rollout: its text for people, and since bundle/2 optional members, named in its list.

A reader checks the members that it knows against the sealed trace. One that it doesn't know is still bound by the
list's digests and signature, so that a later version adds a member without a new number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.errors import SealBroken
from harnesslab.core.trace.stated import lines_of
from harnesslab.core.trace.trace import Trace
from harnesslab.formats.native import importer as native

_README = """# A HarnessLab rollout

Case `{case}`, trial {trial}, outcome {outcome}, {events} events.

    harnesslab verify FILE.zip      # offline, without a database; names the first thing that is wrong
    harnesslab import FILE.zip      # on any instance; manifest digest and seals stay the same

manifest digest   {manifest}
seal of the end   {head}
signing key       {key}

The seals show a change only against a head that was kept elsewhere; the signature shows one only if the key is
known to be the signer's. `trace.jsonl` is the trace for reading; `chunks/` holds the same as stored.
"""
BALANCE = "balance.json"
_ALWAYS = re.compile(r"manifest\.json|rollout\.json|seals\.txt|trace\.jsonl|README\.md|chunks/\d+\.zst|reports/.+")


def _balance(trace: Trace) -> bytes | None:
    """Write the source's totals against what is stored, as the closing event keeps them."""
    lines = lines_of(trace.events[-1].extra)
    rows: list[JSON] = [{**line.to_json(), "short": line.short} for line in lines]
    return canonical_bytes(rows) if rows else None


OPTIONAL: Mapping[str, Callable[[Trace], bytes | None]] = {BALANCE: _balance}
"""By name, what each optional member of this version holds; None where a trace has nothing for it."""


def optional_members(trace: Trace) -> dict[str, bytes]:
    """Return the optional members of a trace's bundle."""
    made = {name: write(trace) for name, write in OPTIONAL.items()}
    return {name: data for name, data in made.items() if data is not None}


def check_optional(names: Sequence[str], read: Callable[[str], bytes], index: Mapping[str, JSON], trace: Trace) -> None:
    """Check the members of a bundle/2 against its list of optional ones; raises `SealBroken` for what is wrong."""
    listed = index.get("optional")
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise SealBroken("no list of optional members", where="bundle.json")
    for name in names:
        if name not in listed and not _ALWAYS.fullmatch(name):
            raise SealBroken("the member is none of a bundle's, and is not named as optional", where=name)
    for name in listed:
        if name not in names:
            raise SealBroken("the optional member is missing", where=str(name))
        if name in OPTIONAL and OPTIONAL[str(name)](trace) != read(str(name)):
            raise SealBroken("it is not what the sealed trace says", where=str(name))


def readme(header: native.Header, manifest: str, head: str, events: int, key: str) -> bytes:
    """Return the text for people."""
    said = _README.format(
        case=header.case,
        trial=(header.trial or 0) + 1,
        outcome=header.outcome.value,
        events=events,
        manifest=manifest,
        head=head,
        key=key,
    )
    return said.encode("utf-8", "replace")
