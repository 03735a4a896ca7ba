"""Traces of any shape, for properties that hold of all of them."""

from __future__ import annotations

from hypothesis import strategies as st

from harnesslab.core.trace.events import (
    AnyEvent,
    HarnessAction,
    ModelCall,
    TestResult,
    ToolCall,
    ToolRequest,
    Usage,
    UserTurn,
    Verification,
)

NAMES = st.sampled_from(["run", "read", "write", "", "tool \udc80"])
COUNTS = st.none() | st.integers(-3, 2**60)
TIMES = st.none() | st.floats(-1, 1e6) | st.just(float("inf"))
EXTRAS = st.sampled_from(
    [{}, {}, {"served": "from the record"}, {"served": "live after a miss", "waited": 0.5}, {"is_copied_context": True}]
)
WHERE = {"step": st.integers(0, 4), "agent": st.sampled_from(["", "reader"]), "at": TIMES, "latency": TIMES}
CALLS = st.builds(
    ModelCall,
    **WHERE,
    extra=EXTRAS,
    attempt=st.integers(0, 3),
    usage=st.none() | st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS),
    served_from_cache=st.sampled_from([None, None, False, True]),
    error=st.sampled_from([None, None, None, "overloaded"]),
    rejected=st.sampled_from([None, None, "NoCall: none", "2 calls"]),
    tool_calls=st.lists(st.builds(ToolRequest, NAMES), max_size=3).map(tuple),
)
EVENTS: st.SearchStrategy[list[AnyEvent]] = st.lists(
    st.one_of(
        CALLS,
        CALLS,
        st.builds(ToolCall, **WHERE, name=NAMES, exit_code=st.sampled_from([None, 0, 1]), timed_out=st.booleans()),
        st.builds(HarnessAction, step=WHERE["step"], name=NAMES, mechanism=st.sampled_from([None, "guard", "clip"])),
        st.builds(UserTurn, at=TIMES),
        st.builds(
            Verification,
            latency=TIMES,
            passed=st.sampled_from([None, True, False]),
            tests=st.lists(st.builds(TestResult, NAMES, st.booleans()), max_size=3).map(tuple),
        ),
    ),
    max_size=25,
)
