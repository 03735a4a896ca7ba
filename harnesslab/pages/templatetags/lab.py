"""How facts are written on pages: the same everywhere."""

from __future__ import annotations

import re
from datetime import datetime

from django import template
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from harnesslab.core.canonical import canonical_bytes
from harnesslab.core.conditions.manifest import Condition, Unknown
from harnesslab.core.deciding.decision_words import reason_words
from harnesslab.core.measuring.statistics import Rate
from harnesslab.core.running.rollout import RATE_RULE
from harnesslab.queries.experiments.progress import ProgressRow
from harnesslab.queries.jobs.listing import JobRow

register = template.Library()

_PIECES = re.compile(r"[^_/.:\-]*[_/.:\-]+|[^_/.:\-]+")
GLYPHS: dict[str, tuple[str, str]] = {
    "solved": ("●", "good"),
    "failed_verification": ("○", "bad"),
    "step_cap": ("○", "bad"),
    "timeout": ("○", "bad"),
    "no_valid_action": ("○", "bad"),
    "refused": ("○", "bad"),
    "verify_timeout": ("◐", "doubt"),
    "interrupted": ("◐", "doubt"),
    "infra_error": ("◐", "doubt"),
    "crash": ("✕", "bad"),
    "running": ("…", "doubt"),
    "not_run": ("–", "none"),
    "unknown": ("–", "none"),
}
RELATIONS: dict[str, tuple[str, str]] = {
    "equal": ("=", "equal"),
    "scrubbed": ("≈", "equal after scrub"),
    "changed": ("≠", "different"),
    "moved": ("⇅", "moved"),
    "only-a": ("−", "only in A"),
    "only-b": ("+", "only in B"),
}


@register.simple_block_tag
def payload(content: SafeString, element: str = "pre", **attributes: str) -> SafeString:
    """Wrap what others wrote, escaped already, in an element inside which htmx heeds no attribute."""
    wanted = {"class": "payload"} | attributes
    named = {name.replace("_", "-"): value for name, value in wanted.items() if value}
    # the newline is the markup's own: without it a <pre> would lose the first one of its text
    own = "\n" if element == "pre" else ""
    return format_html("<{}{} hx-disable>{}{}</{}>", element, flatatt(named), own, content, element)


@register.filter
def outcome(value: str) -> SafeString:
    """Write an outcome as glyph, word and colour."""
    glyph, tone = GLYPHS.get(value, ("–", "none"))
    word = "no verdict" if value == "unknown" else value.replace("_", " ")
    return format_html('<span class="outcome {}"><i aria-hidden="true">{}</i> {}</span>', tone, glyph, word)


DECISIONS: dict[str, tuple[str, str, str]] = {
    "promoted": ("▲", "good", "promoted"),
    "rejected": ("▽", "bad", "rejected"),
    "invalid_infra": ("◐", "doubt", "invalid: infrastructure"),
}


@register.filter
def decision(value: str | None) -> SafeString:
    """Write a decision as glyph, word and colour."""
    glyph, tone, word = DECISIONS.get(value or "", ("–", "none", "no decision"))
    return format_html('<span class="outcome {}"><i aria-hidden="true">{}</i> {}</span>', tone, glyph, word)


@register.filter
def decision_mark(value: str) -> SafeString:
    """Write a decision's glyph alone, beside a sentence that says it."""
    glyph, tone, _ = DECISIONS.get(value, ("–", "none", ""))
    return format_html('<span class="outcome {}" aria-hidden="true">{}</span>', tone, glyph)


@register.filter
def reason(value: str | None) -> str:
    """Write a decision's reason in words."""
    return reason_words(value)


@register.filter
def signed(value: int | None) -> str:
    """Write a difference with its sign."""
    return "–" if value is None else "±0" if not value else f"{value:+d}".replace("-", "−")


@register.filter
def relation(value: str) -> SafeString:
    """Write how two sides compare as a sign with its word for screen readers."""
    sign, word = RELATIONS.get(value, ("?", value))
    return format_html(
        '<span title="{}"><i aria-hidden="true">{}</i><span class="sr">{}</span></span>', word, sign, word
    )


@register.filter
def relation_word(value: str) -> str:
    """Write how two sides compare as a word."""
    return RELATIONS.get(value, ("?", value))[1]


STATES: dict[str, tuple[str, str]] = {
    "queued": ("◌", "none"),
    "running": ("…", "doubt"),
    "done": ("✓", "good"),
    "failed": ("✕", "bad"),
    "cancelled": ("–", "none"),
}


@register.filter
def job_state(job: JobRow | ProgressRow) -> SafeString:
    """Write a job's state as glyph and word."""
    glyph, tone = STATES.get(job.state, ("?", "none"))
    stopping = ", stopping" if job.cancel_requested and not job.ended else ""
    return format_html(
        '<span class="outcome {}"><i aria-hidden="true">{}</i> {}{}</span>', tone, glyph, job.state, stopping
    )


ITERATIONS: dict[str, tuple[str, str]] = {
    "promoted": ("▲", "good"),
    "rejected": ("▽", "bad"),
    "invalid": ("◐", "doubt"),
    "skipped": ("–", "none"),
}


@register.filter
def iteration_state(state: str) -> SafeString:
    """Write an iteration's state as glyph and word; what is open runs."""
    glyph, tone = ITERATIONS.get(state, ("…", "doubt"))
    return format_html('<span class="outcome {}"><i aria-hidden="true">{}</i> {}</span>', tone, glyph, state)


@register.filter
def training_state(state: str) -> SafeString:
    """Write a training's state as glyph and word."""
    glyph, tone = {**STATES, "stopped": ("‖", "doubt")}.get(state, ("?", "none"))
    return format_html('<span class="outcome {}"><i aria-hidden="true">{}</i> {}</span>', tone, glyph, state)


@register.filter
def bar(job: JobRow | ProgressRow) -> SafeString:
    """Draw a job's progress where its total is known."""
    if job.percent is None or job.state == "queued":
        return format_html("{}", "")
    label = f"{job.done:,} of at most {job.total:,}" if job.kind == "rollout" else f"{job.percent} %"
    return format_html(
        '<progress max="100" value="{}" title="{}" aria-label="{}"></progress>', job.percent, label, label
    )


@register.filter
def health(up: bool | None) -> SafeString:
    """Write whether an engine answers as glyph and word."""
    known = {True: ("●", "good", "answers"), False: ("✕", "bad", "away"), None: ("–", "none", "not asked yet")}
    glyph, tone, word = known[up]
    return format_html('<span class="outcome {}"><i aria-hidden="true">{}</i> {}</span>', tone, glyph, word)


@register.filter
def sameness(same: bool | None) -> SafeString:
    """Write whether an attempt went as its parent."""
    known = {True: ("=", "yes", "the same"), False: ("≠", "no", "parts"), None: ("·", "unknown", "can't be said")}
    glyph, tone, word = known[same]
    return format_html('<span class="same {}"><i aria-hidden="true">{}</i> {}</span>', tone, glyph, word)


@register.filter
def split(text: str) -> list[str]:
    """Split words."""
    return text.split()


@register.filter
def number(value: float | None) -> str:
    """Write a count with thousands separators; unknown is not zero."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


@register.filter
def duration(seconds: float | None) -> str:
    """Write a duration in the unit a person would use."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


@register.filter
def size(characters: int) -> str:
    """Write a size of text."""
    if characters < 2000:
        return f"{characters:,} characters"
    return f"{characters / 1000:,.0f}k characters"


@register.filter
def one(index: int | None) -> str:
    """Write a zero-based position as people count."""
    return "–" if index is None else str(index + 1)


@register.filter
def digest(value: str) -> SafeString:
    """Write a digest as eight characters, the whole on hover and for copying."""
    return format_html(
        '<button type="button" class="digest" data-copy="{}" title="{}, click to copy">{}</button>',
        value,
        value,
        value[:8],
    )


@register.filter
def breakable(value: str) -> SafeString:
    """Let a long name break after its separators."""
    return format_html_join(mark_safe("<wbr>"), "{}", ((piece,) for piece in _PIECES.findall(value)))


@register.filter
def depth(agent: str) -> int:
    """Say how deep a sub-agent's path is; at most 4 levels are indented."""
    return min(4, agent.count("/") + 1) if agent else 0


@register.filter
def rate(value: Rate) -> SafeString:
    """Write a rate with its denominator, interval and what was left out."""
    if not value.n:
        return format_html('<span class="quiet">no scored trial{}</span>', _excluded(value))
    interval = f"{value.low * 100:.0f}–{value.high * 100:.0f} %"
    return format_html(
        '<b>{}/{}</b> <span class="quiet" title="95 % Wilson; own crashes are failures (rule {})">{}{}</span>',
        *(value.k, value.n, RATE_RULE, interval, _excluded(value)),
    )


def _excluded(value: Rate) -> str:
    if not value.excluded:
        return ""
    parts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(value.excluded.items()))
    return f" · not counted: {parts}".replace("unknown", "without verdict")


@register.filter
def when(value: datetime | None) -> SafeString:
    """Write a time: UTC in the page, local by script, both on hover."""
    if value is None:
        return format_html("{}", "–")
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        value.isoformat(),
        value.strftime("%Y-%m-%d %H:%M:%S"),
        value.strftime("%Y-%m-%d %H:%M"),
    )


@register.filter
def words(value: str) -> str:
    """Write a name from code as words."""
    return value.replace("_", " ").replace("-", " ")


@register.filter
def get(mapping: dict[str, str], name: str) -> str:
    """Look a name up."""
    return mapping.get(name, "")


@register.filter
def condition(value: Condition) -> SafeString:
    """Write a manifest's condition; an unknown one looks like a gap."""
    if isinstance(value, Unknown):
        return format_html('<span class="gap" title="{}">unknown</span>', value.reason)
    text = value.value if isinstance(value.value, str) else canonical_bytes(value.value).decode()
    return format_html("{}", text if len(text) <= 400 else text[:400] + "…")
