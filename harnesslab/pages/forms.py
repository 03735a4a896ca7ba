"""From what a browser sent to a request's schema, and what is wrong with it back to the form's fields."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from types import NoneType
from typing import Any, TypeVar, get_args

from django.http import QueryDict

from harnesslab.core.canonical import digest
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.natural import natural
from harnesslab.pages.templatetags.fields import FieldErrors
from harnesslab.requests.refusals import FieldError, InvalidRequest
from harnesslab.requests.schema import RequestSchema

_R = TypeVar("_R", bound=RequestSchema)
NAMES = {"cases": "case", "from_step": "step"}
"""Fields that forms name otherwise: each case has a box of its own, and steps count from 1 on pages."""
BEFORE_THE_FIRST = -1


def form_values(schema: type[RequestSchema], sent: QueryDict | Mapping[str, str]) -> dict[str, Any]:
    """Return what a form states of a schema's fields: a box that is not ticked is false, an empty text may be null."""
    document: dict[str, Any] = {}
    for name, field in schema.model_fields.items():
        text = sent.get(NAMES.get(name, name))
        if field.annotation is bool:
            document[name] = bool(text)
        elif name == "cases" and isinstance(sent, QueryDict):
            document[name] = sent.getlist(NAMES[name]) or None
        elif text is not None:
            empty = NoneType in get_args(field.annotation) and not text.strip()
            document[name] = None if empty else step_of(text) if name == "from_step" else text
    return document


def step_of(text: str) -> int | str:
    """Return the step from 0 that a form counts from 1; text that is no number stays, to be refused as everywhere."""
    number = natural(text.strip().removeprefix("-"))
    if number is None:
        return text
    return BEFORE_THE_FIRST if text.strip().startswith("-") else number - 1


def read(schema: type[_R], document: Mapping[str, Any], names: Mapping[str, str] | None = None) -> _R:
    """Return a form's request; raises `InvalidRequest`, whose fields are the form's."""
    try:
        return schema.model_validate(document)
    except InvalidRequest as error:
        raise _on_a_form(error, document).renamed({**NAMES, **(names or {})}) from None


def _on_a_form(error: InvalidRequest, document: Mapping[str, Any]) -> InvalidRequest:
    """Count steps from 1 in what is said of them."""
    if document.get("from_step") != BEFORE_THE_FIRST:
        return error
    said = FieldError("from_step", "that is no whole number from 1", "steps count from 1 here")
    return InvalidRequest(error.noun, [said if each.field == "from_step" else each for each in error.errors])


def refusal(error: HarnessLabError | None, form: Mapping[str, Any]) -> dict[str, Any]:
    """Return what templates are given of an error: `errors` at their fields, and `error` for the page."""
    if isinstance(error, InvalidRequest):
        errors = FieldErrors((each.field, each.sentence) for each in error.errors)
    elif error is not None and error.where in form:
        errors = FieldErrors({error.where: FieldError(error.where, error.what, error.hint).sentence})
    else:
        errors = FieldErrors()
    return {"form": form, "errors": errors, "error": error}


def key_of(form: Mapping[str, str]) -> str:
    """Return the key of what was sent: the same for a second click, another for a page changed after going back."""
    fields = {name: value for name, value in sorted(form.items()) if name not in ("key", "csrfmiddlewaretoken")}
    return f"{form.get('key', '')[:24] or secrets.token_urlsafe(16)} {digest(fields)[-12:]}"
