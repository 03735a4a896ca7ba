"""A command's options from a request's schema, so that it takes, refuses and explains what the form and the API do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any, TypeVar, get_args

import click
from pydantic.fields import FieldInfo

from harnesslab.requests.refusals import InvalidRequest
from harnesslab.requests.schema import RequestSchema
from harnesslab.requests.values import ValueReading

_R = TypeVar("_R", bound=RequestSchema)
_F = TypeVar("_F", bound=Callable[..., Any])


def options_of(schema: type[RequestSchema], **named: str | None) -> Callable[[_F], _F]:
    """Return a decorator that adds an option a field; `named` gives some other names (with spaces between), or None.

    All are read by the schema, so that a wrong value has the same sentence through every door.
    """

    def add(command: _F) -> _F:
        for name, field in reversed(schema.model_fields.items()):
            names = named.get(name, f"--{name.replace('_', '-')}")
            if names is not None:
                command = click.option(*names.split(), name, **_attributes(field))(command)
        return command

    return add


def _attributes(field: FieldInfo) -> dict[str, Any]:
    stated: dict[str, Any] = {"help": field.description, "required": field.is_required()}
    readings = [each for each in _metadata(field) if isinstance(each, ValueReading)]
    if field.annotation is bool:
        return {**stated, "is_flag": True, "default": None}
    if any(reading.many for reading in readings):
        return {**stated, "multiple": True, "help": f"{field.description} May be repeated."}
    words = next((each.document["enum"] for each in readings if "enum" in each.document), ())
    default = None if field.is_required() or field.default in (None, "", (), {}) else str(field.default)
    return {**stated, "metavar": f"[{'|'.join(words)}]" if words else None, "default": default, "show_default": True}


def _metadata(field: FieldInfo) -> Iterator[object]:
    """Yield what annotates a field's type, and where that is one of several, theirs."""
    yield from field.metadata
    for each in get_args(field.annotation):
        yield from getattr(each, "__metadata__", ())


def read(schema: type[_R], values: Mapping[str, Any]) -> _R:
    """Return the request that options state; raises `InvalidRequest`, whose fields are the options' names."""
    stated = {name: value for name, value in values.items() if value not in (None, ())}
    empty = {name: None for name, value in stated.items() if value == "" and _may_be_none(schema.model_fields[name])}
    try:
        return schema.model_validate({**stated, **empty})
    except InvalidRequest as error:
        raise error.renamed(option_names()) from None


def _may_be_none(field: FieldInfo) -> bool:
    return NoneType in get_args(field.annotation)


def option_names() -> dict[str, str]:
    """Return the running command's options as they are typed, by name."""
    return {each.name or "": each.opts[0] for each in click.get_current_context().command.params}
