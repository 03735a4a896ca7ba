"""What an engine answers is recorded under the same names."""

from __future__ import annotations

import dataclasses
import typing

import msgspec

from harnesslab.core.running import ports
from harnesslab.core.trace import events


def test_every_field_of_an_answer_is_one_of_a_model_call_with_its_type_and_default() -> None:
    types = typing.get_type_hints(ports.Answer)
    recorded = {field.name: field for field in msgspec.structs.fields(events.ModelCall)}
    for field in dataclasses.fields(ports.Answer):
        assert recorded[field.name].type == types[field.name], field.name
        assert recorded[field.name].default == field.default, field.name
