"""Model calls grouped by canonical request: one request with several answers shows nondeterminism without a rerun."""

from __future__ import annotations

from collections import defaultdict

from django.db.models import Count, Max

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.comparing.text_difference import spans
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.trace.events import ModelCall
from harnesslab.core.trace.labels import clip, label
from harnesslab.core.trace.messages import view
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader, preload
from harnesslab.store.models import Event, Rollout
from harnesslab.store.models.events import KEY_SHIFT, KINDS, MAX_EVENTS

PAGE = 50
_LAST = 10**9
"""No list is longer; larger numbers of an address would be too large for a database."""
PREVIEW = 2000
"""Characters shown of a message."""
MAX_CALLS = 500
"""Calls of one request that are read for its page."""


class RequestRow(ReadModel):
    """One canonical request: how often it was sent and how many answers it got."""

    digest: str
    sent: int
    answers: int
    models: list[str]
    last_message: str
    case: str


class RequestPage(ReadModel):
    """A page of requests."""

    rows: list[RequestRow]
    repeated: int
    """Requests sent more than once."""
    unstable: int
    """Repeated requests with more than one answer."""
    rebuilt: int
    """Model calls left out because an importer rebuilt their input."""
    next: int | None


class DistinctAnswer(ReadModel):
    """One distinct answer, with the calls that got it as (rollout, event, trial) and where it first differs."""

    digest: str
    count: int
    text: str
    calls: list[tuple[int, int, str]]
    differs_at: str


class RequestDetail(ReadModel):
    """A request with its distinct answers, most frequent first."""

    digest: str
    sent: int
    failed: int
    """Calls that got no answer."""
    left_out: int
    """Later calls that were not read, so that they are in no other number."""
    answers: list[DistinctAnswer]
    messages: list[tuple[str, str, int]]
    """(role, beginning of the text, its whole length)."""
    model: str
    engines: list[str]
    settings: list[tuple[str, str]]
    first: tuple[int, int]
    """(rollout, event) of one call that sent it."""


def request_page(offset: int = 0, *, unstable_only: bool = False) -> RequestPage:
    """Return repeated requests, those with most answers first."""
    offset = max(0, min(offset, _LAST))
    grouped = (
        Event.objects.filter(request__isnull=False)
        .values("request")
        .annotate(sent=Count("key"), answers=Count("answer", distinct=True), last=Max("key"))
        .filter(sent__gt=1)
    )
    unstable = grouped.filter(answers__gt=1)
    listed = (unstable if unstable_only else grouped).order_by("-answers", "-sent", "request")
    chosen = list(listed[offset : offset + PAGE + 1])
    return RequestPage(
        rows=_rows(
            [(bytes(row["request"] or b"").hex(), row["sent"], row["answers"], row["last"]) for row in chosen[:PAGE]]
        ),
        repeated=grouped.count(),
        unstable=unstable.count(),
        rebuilt=Event.objects.filter(kind=KINDS.index("model_call"), request__isnull=True).count(),
        next=offset + PAGE if len(chosen) > PAGE else None,
    )


def _rows(found: list[tuple[str, int, int, int]]) -> list[RequestRow]:
    rollouts = Rollout.objects.select_related("case").in_bulk({last >> KEY_SHIFT for *_, last in found})
    readers = {pk: StoredTraceReader(rollout) for pk, rollout in rollouts.items()}
    preload([(readers[last >> KEY_SHIFT], last & (MAX_EVENTS - 1)) for *_, last in found])
    rows = []
    for digest, sent, answers, last in found:
        reader = readers[last >> KEY_SHIFT]
        rollout = reader.rollout
        messages = reader.message_positions(last & (MAX_EVENTS - 1))
        seen = view(reader.payload(messages[-1])) if messages else None
        shown = f"{seen.role}: {clip(seen.text, 110)}" if seen else "no messages"
        rows.append(
            RequestRow(
                digest=digest,
                sent=sent,
                answers=answers,
                models=[rollout.model] if rollout.model else [],
                last_message=shown,
                case=rollout.case.name,
            )
        )
    return rows


def request_detail(digest: str) -> RequestDetail:
    """Return one request with its answers; raises `NotFound`."""
    try:
        wanted = bytes.fromhex(digest)
    except ValueError:
        raise InvalidValue(f"{digest!r} is no request digest") from None
    rows = Event.objects.filter(request=wanted).order_by("key").values_list("key", "answer")
    sent = rows.count()
    if not sent:
        raise NotFound("no such request", where=digest)
    calls: dict[str, list[int]] = defaultdict(list)
    for key, answer in rows[:MAX_CALLS]:
        calls[bytes(answer or b"").hex()].append(key)
    rollouts = Rollout.objects.select_related("case").in_bulk(
        {key >> KEY_SHIFT for keys in calls.values() for key in keys}
    )
    readers = {pk: StoredTraceReader(rollout) for pk, rollout in rollouts.items()}
    preload([(readers[keys[0] >> KEY_SHIFT], keys[0] & (MAX_EVENTS - 1)) for keys in calls.values()])
    ordered = sorted(calls.items(), key=lambda item: (-len(item[1]), item[1][0]))
    answers = _answers([item for item in ordered if item[0]], readers)
    first = ordered[0][1][0]
    reader, index = readers[first >> KEY_SHIFT], first & (MAX_EVENTS - 1)
    event = reader.event(index)
    if not isinstance(event, ModelCall):
        raise NotFound("no such request", where=digest)
    messages = [view(message) for message in reader.messages(index)]
    return RequestDetail(
        digest=digest,
        sent=sent,
        failed=len(calls.get("", ())),
        left_out=max(0, sent - MAX_CALLS),
        answers=answers,
        messages=[(seen.role, _preview(seen.text), len(seen.text)) for seen in messages],
        model=event.model,
        engines=sorted({rollout.engine for rollout in rollouts.values() if rollout.engine}),
        settings=[(name, _setting(value)) for name, value in event.settings.items() if name != "model"],
        first=(first >> KEY_SHIFT, index),
    )


def _answers(ordered: list[tuple[str, list[int]]], readers: dict[int, StoredTraceReader]) -> list[DistinctAnswer]:
    found: list[DistinctAnswer] = []
    reference: ModelCall | None = None
    for digest, keys in ordered:
        reader, index = readers[keys[0] >> KEY_SHIFT], keys[0] & (MAX_EVENTS - 1)
        event = reader.event(index)
        if not isinstance(event, ModelCall):
            continue
        found.append(
            DistinctAnswer(
                digest=digest,
                count=len(keys),
                text=_answer_text(event),
                calls=[
                    (key >> KEY_SHIFT, key & (MAX_EVENTS - 1), f"#{readers[key >> KEY_SHIFT].rollout.trial + 1}")
                    for key in keys[:40]
                ],
                differs_at=_first_difference(reference, event) if reference is not None else "",
            )
        )
        reference = reference or event
    return found


def _preview(text: str) -> str:
    return text if len(text) <= PREVIEW else f"{text[:PREVIEW]}…"


def _answer_text(event: ModelCall) -> str:
    named = label(event)
    return clip(f"{named.what}: {named.detail}", 400)


def _first_difference(reference: ModelCall, event: ModelCall) -> str:
    """Say where an answer first differs from the most frequent one: a token if ids are recorded, else a word."""
    if reference.token_ids is not None and event.token_ids is not None:
        pairs = enumerate(zip(reference.token_ids, event.token_ids, strict=False))
        first = next((index for index, (one, two) in pairs if one != two), None)
        if first is not None:
            return f"token {first + 1}"
    for part, (one, two) in _parts(reference, event).items():
        if one != two:
            runs = spans(one, two)
            before = runs[0].text if runs and runs[0].side == "equal" else ""
            return f"word {len(before.split()) + 1} of the {part}"
    return "finish reason"


def _parts(one: ModelCall, two: ModelCall) -> dict[str, tuple[str, str]]:
    """Return the parts of two answers in the order in which a model gives them."""
    return {
        "reasoning": (one.reasoning or "", two.reasoning or ""),
        "text": (one.text or "", two.text or ""),
        "tool calls": (_calls(one), _calls(two)),
    }


def _calls(event: ModelCall) -> str:
    return "\n".join(f"{call.name} {call.raw if call.raw is not None else call.arguments}" for call in event.tool_calls)


def _setting(value: JSON) -> str:
    return value if isinstance(value, str) else canonical_bytes(value).decode()
