"""A form's field: its control as it was typed, with what is wrong with it beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import template
from django.template import Context

register = template.Library()


class FieldErrors(dict[str, str]):
    """Sentences by field; the one that is drawn first gets the focus."""

    focused = ""


@register.inclusion_tag("forms/_field.html", takes_context=True)
def field(
    context: Context, name: str, label: str, choices: Iterable[Any] | None = None, css: str = "", **attributes: Any
) -> dict[str, Any]:
    """Draw a field of the page's `form`: a choice where there are `choices` (words, or pairs of value and label), a
    text area where it has rows, else an input; `css` is the whole field's class."""
    errors: FieldErrors = context.get("errors") or FieldErrors()
    sentence = errors.get(name, "")
    described = [attributes.pop("described", ""), f"wrong-{name}" if sentence else ""]
    if sentence:
        attributes |= {"aria-invalid": "true"}
        attributes["autofocus"] = errors.focused in ("", name)
        errors.focused = errors.focused or name
    elif errors:
        attributes.pop("autofocus", None)
    if any(described):
        attributes["aria-describedby"] = " ".join(filter(None, described))
    value = context["form"].get(name, "")
    return {
        "name": name,
        "label": label,
        "value": f"\n{value}" if "rows" in attributes and value[:1] in ("\r", "\n") else value,  # browsers drop one
        "choices": None if choices is None else [_option(each, value) for each in choices],
        "area": "rows" in attributes,
        "attributes": [(key, "" if word is True else word) for key, word in attributes.items() if word is not False],
        "sentence": sentence,
        "css": css,
    }


@register.inclusion_tag("forms/_wrong.html", takes_context=True)
def wrong(context: Context, name: str) -> dict[str, str]:
    """Say what is wrong with a group of controls."""
    return {"name": name, "sentence": (context.get("errors") or {}).get(name, "")}


def _option(choice: Any, chosen: str) -> tuple[str | None, str, bool]:
    value, label = (None, choice) if isinstance(choice, str) else choice
    return value, label, chosen == (label if value is None else value)
