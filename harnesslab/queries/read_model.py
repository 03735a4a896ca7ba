"""The base of what queries return."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ReadModel(BaseModel):
    """Frozen, and the schema of the JSON API at the same time."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)
