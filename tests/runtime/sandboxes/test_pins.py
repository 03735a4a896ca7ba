"""Each pin holds, and the same command shows what happens without it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from harnesslab.core.running.ports import Place, SandboxRefused
from harnesslab.runtime.sandboxes import pins
from harnesslab.runtime.sandboxes.pins import NAMES
from tests.runtime.sandboxes.conftest import Opener

CASES: dict[str, tuple[str, Sequence[str]]] = {
    pins.ADDRESSES: ("python3 -c 'print(id(object()))'; grep stack /proc/self/maps", ()),
    pins.CLOCK: ("date +%s.%N; echo $EPOCHREALTIME; python3 -c 'import time, uuid; print(time.time())'", ()),
    pins.RANDOM: ("python3 -c 'import os, random; print(os.urandom(8), random.random())'", ()),
    pins.URANDOM: ("head -c 16 /dev/urandom | od -x; head -c 16 /dev/random | od -x", ()),
    # Python draws its hash seed from what the other pin fixes
    pins.HASH_SEEDS: ("python3 -c 'print(hash(\"a\"))'; perl -e 'print keys %{{map {$_ => 1} 1..20}}'", (pins.RANDOM,)),
    pins.UPTIME: ("cat /proc/uptime", ()),
}
"""What differs between two sandboxes without the pin, and which pins must be off beside it."""

FIXED: dict[str, tuple[str, str, Sequence[str]]] = {
    pins.FILE_TIMES: ("stat -c %Y made", "1767225600", ()),
    pins.GIT_DATES: ("git log --format=%at,%ct", "1767225600,1767225600", (pins.CLOCK,)),
    pins.HOST_NAME: ("uname -n; cat /etc/hostname", "sandbox\nsandbox", ()),
    pins.LOAD: ("cat /proc/loadavg", "0.00 0.00 0.00 1/10 10", ()),
    pins.LOCALE: ("locale charmap", "UTF-8", ()),
    pins.TIME_ZONE: ("echo ${TZ-the machine\\'s}", "UTC", ()),
}
"""What a command says with the pin, and something else without it."""

PREPARE = "touch made; git init -q .; git commit -q --allow-empty -m x"


def said(opened: Opener, command: str, held: frozenset[str] | None, seed: int = 7) -> str:
    """Return what a command says in a new sandbox, after files and a commit were made."""
    sandbox = opened(Place(pins=held, seed=seed))
    sandbox.run(PREPARE, timeout=20)
    found = sandbox.run(command, timeout=20)
    assert found.exit_code == 0, found
    return found.output.decode().strip()


@pytest.mark.parametrize("name", sorted(CASES))
def test_two_sandboxes_say_the_same_only_with_the_pin(opened: Opener, name: str) -> None:
    command, beside = CASES[name]
    with_pin = frozenset(NAMES) - set(beside)
    assert said(opened, command, with_pin) == said(opened, command, with_pin)
    without = with_pin - {name}
    assert said(opened, command, without) != said(opened, command, without)


@pytest.mark.parametrize("name", sorted(FIXED))
def test_a_fixed_value_is_seen_only_with_the_pin(opened: Opener, name: str) -> None:
    command, value, beside = FIXED[name]
    with_pin = frozenset(NAMES) - set(beside)
    assert said(opened, command, with_pin) == value
    assert said(opened, command, with_pin - {name}) != value


def test_what_a_sandbox_holds_by_its_making(opened: Opener) -> None:
    command = "echo $$; for n in c a b 3 1 2; do : > $n; done; ls -U; python3 -c 'import os; print(os.listdir())'"
    assert said(opened, command, None) == said(opened, command, None)


def test_the_user_is_the_same_though_the_machine_sees_another(opened: Opener) -> None:
    assert {said(opened, "id -u; whoami; ls -ln made | cut -d' ' -f 3", None) for _ in range(2)} == {
        "1000\nagent\n1000"
    }
    without = {said(opened, "id -u", frozenset(NAMES) - {pins.USER}) for _ in range(2)}
    assert (len(without) == 2) == (os.geteuid() == 0)


def test_a_whole_session_repeats(opened: Opener) -> None:
    commands = (
        "python3 -c 'import uuid, tempfile; print(uuid.uuid1(), uuid.uuid4(), tempfile.mkdtemp())'",
        "echo $RANDOM $(date) $(mktemp -u); perl -e 'print rand, time'",
        "git init -q r; cd r; echo x > f; git add f; git commit -qm one; git rev-parse HEAD",
        "cd r; ls -la --time-style=full-iso | grep -v ' \\.\\.\\?$' | cut -d' ' -f 6-; git status",
    )

    def session(seed: int) -> list[bytes]:
        sandbox = opened(Place(seed=seed))
        return [sandbox.run(command, timeout=20).output for command in commands]

    first = session(1)
    assert session(1) == first
    assert session(2)[0] != first[0]


def test_time_passes_and_a_timeout_inside_ends(opened: Opener) -> None:
    code = "import time; a = time.time(); b = time.time(); print(b > a); time.sleep(0.1)"
    assert said(opened, f"python3 -c '{code}'; timeout 0.2 sleep 5 || echo ended", None) == "True\nended"


def test_each_pin_is_named_with_its_value_or_why_it_is_missing(opened: Opener) -> None:
    found = {pin.name: pin for pin in opened().pins}
    assert tuple(found) == NAMES
    assert all(bool(pin.value) != bool(pin.missing) for pin in found.values())
    missing = {name for name, pin in found.items() if pin.missing}
    assert missing == set()


def test_a_pin_that_can_not_be_held_says_why(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "_faketime", lambda: "")
    monkeypatch.setattr(pins, "_addresses_missing", lambda: "not on this machine")
    sandbox = opened()
    missing = {pin.name: pin.missing for pin in sandbox.pins if pin.missing}
    assert set(missing) >= {pins.CLOCK, pins.RANDOM, pins.ADDRESSES}
    assert "apt-get install libfaketime" in missing[pins.CLOCK]
    assert sandbox.run("echo ${LD_PRELOAD-none}", timeout=10).output == b"none\n"


def test_only_pins_that_were_asked_for_are_named(opened: Opener) -> None:
    assert [pin.name for pin in opened(Place(pins=frozenset({pins.LOCALE}))).pins] == [pins.LOCALE]


def test_pins_and_clocks_that_do_not_exist_are_refused(opened: Opener) -> None:
    with pytest.raises(SandboxRefused, match=r"There is no pin 'moon'"):
        opened(Place(pins=frozenset({"moon"})))
    with pytest.raises(SandboxRefused, match="is no time such as"):
        opened(Place(clock="yesterday"))
