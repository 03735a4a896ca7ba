"""Which chains of commands can be run again."""

from __future__ import annotations

import msgspec

from harnesslab.core.measuring.certification import chain_of
from harnesslab.core.trace.events import ToolCall
from harnesslab.core.trace.trace import Trace, TraceBuilder
from tests.core.running.test_recipe import RECIPE

SANDBOXED = ToolCall(name="run", arguments={"command": "ls"}, result="x", exit_code=0)


def asked_once(*calls: ToolCall) -> Trace:
    """A trace of one model call, whose commands are numbered by steps of their own."""
    builder = TraceBuilder()
    builder.model_call(["q"], text="a", step=0)
    for step, call in enumerate(calls):
        builder.add(msgspec.structs.replace(call, step=2 * step))
    return builder.close("solved")


def test_a_chain_can_be_run_again() -> None:
    assert chain_of(asked_once(SANDBOXED, SANDBOXED, SANDBOXED), RECIPE).why_not == ""


def test_a_command_that_may_not_repeat_is_found_behind_a_gap_of_steps() -> None:
    late = msgspec.structs.replace(SANDBOXED, timed_out=True)
    chain = chain_of(asked_once(SANDBOXED, SANDBOXED, late), RECIPE)
    assert "step 5 timed out" in chain.why_not
