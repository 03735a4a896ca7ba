"""What cancelling answers, of whatever kind the work was."""

from __future__ import annotations

from ninja import Schema


class Cancelled(Schema):
    """How many attempts or rollouts were asked to stop; they end at their next step."""

    asked: int
