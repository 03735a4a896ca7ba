"""The base of all requests."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from harnesslab.requests.refusals import InvalidRequest, field_errors


class RequestSchema(BaseModel):
    """Frozen; making one raises `InvalidRequest`, which pages, API and commands answer with its sentences."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    noun: ClassVar[str]
    """What is asked for, in one word."""

    def check(self) -> None:
        """Look at fields together, once each is right alone; raises what `refused` returns."""

    @model_validator(mode="after")
    def _together(self) -> Self:
        self.check()
        return self

    @model_validator(mode="wrap")  # after the one above, so that it is around it
    @classmethod
    def _all_at_once(cls, document: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(document)
        except ValidationError as error:
            raise InvalidRequest(cls.noun, field_errors(error)) from None
