"""What is wrong with a request, field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from harnesslab.core.errors import InvalidValue

_GENERAL = {
    "missing": "it is needed",
    "extra_forbidden": "there is no such field",
    "string_unicode": "a field's name is no text",
    "model_type": "not an object",
}


class FieldError(NamedTuple):
    """What is wrong with one field, and what would help."""

    field: str
    """Its key; that of an inner object's field after a dot; empty for the request as a whole."""
    what: str
    hint: str = ""

    @property
    def sentence(self) -> str:
        """The message without the field's name: the same for a form, JSON and a command."""
        return f"{self.what} ({self.hint})" if self.hint else self.what


class InvalidRequest(InvalidValue):
    """A request with at least one wrong field; `errors` are all of them, in the order of its fields."""

    def __init__(self, noun: str, errors: Sequence[FieldError]) -> None:
        self.noun, self.errors = noun, tuple(errors)
        said = (f"{each.field}: {each.sentence}" if each.field else each.sentence for each in errors)
        super().__init__("; ".join(said), where=noun)

    def renamed(self, names: Mapping[str, str]) -> InvalidRequest:
        """Return it with fields by the names that they have on a form or a command line."""
        return InvalidRequest(
            self.noun, [each._replace(field=names.get(each.field, each.field)) for each in self.errors]
        )


def refused(what: str, hint: str = "", field: str = "") -> PydanticCustomError:
    """Return the error that a validator raises; `field` names the one at fault where several are looked at."""
    # no placeholders: the text may hold what the formatting of messages can't encode
    return PydanticCustomError("refused", "refused", {"what": what, "hint": hint, "field": field})


def field_errors(error: ValidationError) -> list[FieldError]:
    """Return all that a validation found."""
    return [_field_error(item) for item in error.errors(include_url=False, include_input=False)]


def _field_error(item: ErrorDetails) -> FieldError:
    stated = item.get("ctx", {})
    inside = [part for part in item["loc"] if isinstance(part, str)]
    field = ".".join([*inside, *filter(None, [stated.get("field")])])
    if item["type"] in _GENERAL:
        return FieldError(field[:80], _GENERAL[item["type"]])
    return FieldError(field, stated.get("what", item["msg"]), stated.get("hint", ""))
