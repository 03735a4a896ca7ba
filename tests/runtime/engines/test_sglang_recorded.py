"""The SGLang client against what two real servers answered; script/test-sglang --record writes the recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.runtime.engines.conformance import CHECKS, Subject
from tests.runtime.engines.loopback import Record, replaying
from tests.runtime.engines.sglang_subjects import NAMES, RECORDED, subject_of


@pytest.fixture(scope="module", params=NAMES)
def recorded(request: pytest.FixtureRequest) -> tuple[str, Record]:
    """One recording."""
    return request.param, Record.read(RECORDED / f"sglang-{request.param}.json")


@pytest.fixture
def subject(recorded: tuple[str, Record]) -> Iterator[Subject]:
    """The engine over a server that answers as the real one did."""
    name, record = recorded
    with replaying(record) as address:
        yield subject_of(name, address)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
def test_it_conforms(subject: Subject, check: Callable[[Subject], None]) -> None:
    check(subject)
