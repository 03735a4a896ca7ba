"""Where two lists of messages differ, as insertions and deletions and never by their positions."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import Indel

from harnesslab.core.canonical import JSON, canonical_bytes, in_order
from harnesslab.core.contracts.comparators import ContentReader
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.trace.messages import view
from harnesslab.core.trace.renaming import ID_KEYS, PATTERN


def differing_span(
    left: Sequence[JSON], right: Sequence[JSON], contract: Contract
) -> tuple[Sequence[JSON], Sequence[JSON], JSON]:
    """Return the first run of messages in which two lists differ, of each, and the first equal one after it, or None.

    Of a run that was changed on both sides, the messages that stand first are of one role where such a pair is there.
    """
    numbers: dict[bytes, int] = {}
    keys_a, keys_b = (
        [numbers.setdefault(_key(message, contract), len(numbers)) for message in side] for side in (left, right)
    )
    opcodes = list(Indel.opcodes(keys_a, keys_b))
    first = next((index for index, each in enumerate(opcodes) if each.tag != "equal"), None)
    if first is None:  # equal but for the order in which ids were named
        return left[:1], right[:1], None
    from_a, from_b = opcodes[first].src_start, opcodes[first].dest_start
    end_a, end_b = from_a, from_b
    for each in opcodes[first:]:
        if each.tag == "equal":
            break
        end_a, end_b = each.src_end, each.dest_end
    following = left[end_a] if end_a < len(left) else None
    return (*_paired(left[from_a:end_a], right[from_b:end_b]), following)


def _paired(left: Sequence[JSON], right: Sequence[JSON]) -> tuple[Sequence[JSON], Sequence[JSON]]:
    """Let two runs begin with messages of one role, so that like is shown against like."""
    if not left or not right or view(left[0]).role == view(right[0]).role:
        return left, right
    roles = [view(message).role for message in right]
    for index, message in enumerate(left):
        if view(message).role in roles:
            return left[index:], right[roles.index(view(message).role) :]
    return left, right


def _key(message: JSON, contract: Contract) -> bytes:
    """Return what makes a message equal to another wherever they stand: all but its ids."""
    return canonical_bytes(ContentReader(contract, ()).message(_without_ids(message)))


def _without_ids(value: JSON) -> JSON:
    if isinstance(value, str):
        return PATTERN.sub("<id>", value)
    if isinstance(value, dict):
        return {
            key: "" if key in ID_KEYS and isinstance(item, str) else _without_ids(item) for key, item in in_order(value)
        }
    if isinstance(value, list | tuple):
        return [_without_ids(item) for item in value]
    return value
