"""What counts as waiting for the lab's own ceiling."""

from __future__ import annotations

from harnesslab.runtime.driver.queueing import QueueTime


class Clock:
    """Shows what a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_seconds_of_a_wait_that_goes_on_count_too() -> None:
    clock = Clock()
    queue = QueueTime(clock)
    with queue.waiting():
        clock.now += 3
        assert queue.seconds == 3
    clock.now += 5
    assert queue.seconds == 3


def test_while_one_request_is_answered_the_rollout_works_though_others_wait() -> None:
    clock = Clock()
    queue = QueueTime(clock)
    with queue.waiting():
        clock.now += 1
        with queue.answered():
            clock.now += 10
        clock.now += 1
        with queue.waiting():
            clock.now += 1  # two that wait are one wait
    assert queue.seconds == 3


def test_a_wait_that_breaks_off_counts_up_to_there() -> None:
    clock = Clock()
    queue = QueueTime(clock)
    try:
        with queue.waiting():
            clock.now += 2
            raise TimeoutError
    except TimeoutError:
        pass
    clock.now += 2
    assert queue.seconds == 2
