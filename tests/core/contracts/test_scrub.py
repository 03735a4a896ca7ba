"""Each scrub rule removes what it names, counts it, and leaves all else."""

from __future__ import annotations

import pytest
from hypothesis import given

from harnesslab.core.contracts import scrub
from harnesslab.core.contracts.scrub import RULES, Removed, explaining, rules
from harnesslab.core.errors import InvalidValue
from tests.core.traces import TEXTS


def scrubbed(text: str, *names: str) -> str:
    return scrub.scrub(text, rules([f"{name}@1" for name in names]) if names else RULES)


@pytest.mark.parametrize(
    ("rule", "text", "left"),
    [
        ("addresses", "<Model at 0x7f3a2b1c4d50>", "<Model at <address>>"),
        ("addresses", "0x7ffe12 0x1f", "<address> 0x1f"),
        ("ls-dates", "-rw-r--r-- 1 me staff 120 Nov  3 10:02 a.py", "-rw-r--r-- 1 me staff 120 <date> a.py"),
        ("ls-dates", "drwxr-xr-x 2 me staff 4.0K Jan 13  2024 src", "drwxr-xr-x 2 me staff 4.0K <date> src"),
        ("ls-dates", "total 8\n-rw-r--r--. 1 0 0 120 2024-01-13 10:02 a", "total 8\n-rw-r--r--. 1 0 0 120 <date> a"),
        (
            "ls-dates",
            "-rw-r--r-- 1 me me 12 2024-01-13 10:02:03.123456789 +0000 a",
            "-rw-r--r-- 1 me me 12 <date> a",
        ),
        ("ls-dates", "---------- 1 0 0 12 Jan 3 10:02 a", "---------- 1 0 0 12 <date> a"),
        ("clock-times", "at 2024-01-13T10:02:03.123Z ok", "at <time> ok"),
        ("clock-times", "2024-01-13 10:02:03,123 INFO", "<time> INFO"),
        ("clock-times", "2024-01-13T10:02+02:00", "<time>"),
        ("clock-times", "[10:02:03] start", "[<time>] start"),
        ("clock-times", "10:02:03.5: start", "<time>: start"),
        ("clock-times", "created:10:02:03", "created:<time>"),
        ("clock-times", "Sun Nov 29 14:15:33 UTC 2026", "<time>"),
        ("clock-times", "Sun Nov  9 14:15:33 2026", "<time>"),
        ("clock-times", "Tue, 13 Jan 2024 10:02:03 GMT", "<time>"),
        ("clock-times", "Nov 29 14:15:33 host sshd", "<time> host sshd"),
        ("durations", "real 0m0.123s", "real <duration>s"),
        ("durations", "real\t0m0.123s\nuser\t0m0.001s", "real\t<duration>s\nuser\t<duration>s"),
        ("durations", "=== 3 passed in 0.12s ===", "=== 3 passed in <duration>s ==="),
        ("durations", "Took: 15 ms", "Took: <duration> ms"),
        ("durations", "elapsed=1.5seconds", "elapsed=<duration>seconds"),
        ("durations", "finished after 3 minutes", "finished after <duration> minutes"),
        ("pids", "started pid 123", "started pid <pid>"),
        ("pids", "PID: 77", "PID: <pid>"),
        ("pids", "Process ID 5, ppid=9", "Process ID <pid>, ppid=<pid>"),
        ("uuids", "run 550e8400-e29b-41d4-a716-446655440000.", "run <uuid>."),
        ("temp-names", "/tmp/tmpab12cd34/a.py", "/tmp/<temp>/a.py"),
        ("temp-names", "/tmp/tmpab_2cd34.json", "/tmp/<temp>.json"),
        ("temp-names", "/tmp/tmp.Xy12AbCdEf/a", "/tmp/<temp>/a"),
        ("temp-names", "/var/tmp/build.a1B2c3", "/var/tmp/<temp>"),
        ("temp-names", "/tmp/pytest-of-me/pytest-12/test_a0", "/tmp/<temp>/test_a0"),
        ("temp-names", "/tmp/npm-a1b2c3d4/x", "/tmp/<temp>/x"),
    ],
)
def test_a_rule_removes_what_it_names(rule: str, text: str, left: str) -> None:
    assert scrubbed(text, rule) == left


@pytest.mark.parametrize(
    "text",
    [
        "3 passed, 2 failed",
        "exit code 1, 42 files, 3.14",
        "version 1.2.3 and 10.0.0-rc1",
        "listening on 192.168.0.12:8080",
        "fe80:00:11:22:33 and ::10:20:30 and 00:11:22:33:44:55",
        "due 2024-01-13, or Jan 13 2024, or 13 January",
        "I can't help with that.",
        "size 120 bytes, 4.0K, 15 ms, 3 s",
        "in 5 steps, after 3 tries, took 2 shots",
        "paid in 2 US dollars",
        "port 5432, line 12:34",
        "aspect 16:9, score 10:02",
        "rapid 123, cupid5",
        "0x1f, 0xff",
        "/tmp/results.parquet /tmp/db.sqlite3 /tmp/my-application /tmp/tmp_results /tmp/notes.txt /tmp/x",
        "rw-r--r-- Nov 3 budget",
        "550e8400-e29b-41d4",
        "timeout=30s",
    ],
)
def test_what_no_rule_names_stays(text: str) -> None:
    assert scrubbed(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Nov 29 14:15:33 FAIL disk", "<time> FAIL disk"),
        ("Nov 29 14:15:33 ERROR disk", "<time> ERROR disk"),
        ("Nov 29 14:15:33 4096 bytes", "<time> 4096 bytes"),
    ],
)
def test_what_follows_a_time_is_no_time_zone_or_year(text: str, left: str) -> None:
    assert scrubbed(text, "clock-times") == left


@given(TEXTS)
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    assert scrubbed(scrubbed(text)) == scrubbed(text)


def test_the_hint_never_hides_a_match() -> None:
    for rule in RULES:
        assert rule.hint


def test_removals_are_counted_with_examples() -> None:
    removed = Removed()
    scrub.scrub("pid 1, pid 2, pid 1 at 10:00:00", RULES, removed)
    assert removed.counts == {"pids@1": 3, "clock-times@1": 1}
    assert removed.examples == {"pids@1": ["1", "2"], "clock-times@1": ["10:00:00"]}
    scrub.scrub(" ".join(f"pid {number}" for number in range(9)), RULES, removed)
    assert removed.counts["pids@1"] == 12
    assert len(removed.examples["pids@1"]) == 5


def test_rules_are_named_with_their_version() -> None:
    assert [rule.key for rule in rules(["pids@1", "addresses@1"])] == ["addresses@1", "pids@1"]
    with pytest.raises(InvalidValue, match=r"no such scrub rule: pids@2 \(known rules: addresses@1"):
        rules(["pids@2"])


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ("3 passed in 0.12s", "3 passed in 0.31s", ["durations@1"]),
        ("pid 5 at 10:00:00", "pid 6 at 10:00:01", ["clock-times@1", "pids@1"]),
        ("3 passed in 0.12s", "2 passed in 0.12s", []),
        ("same", "same", []),
        ("pid 5", "pid 6", ["pids@1"]),
    ],
)
def test_the_fewest_rules_that_explain_a_difference_are_found(a: str, b: str, found: list[str]) -> None:
    assert explaining(a, b) == found
