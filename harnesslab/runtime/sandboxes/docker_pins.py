"""What a Docker sandbox holds fixed: what environment variables and the engine's options can."""

from __future__ import annotations

from harnesslab.core.running.ports import Pin, Place
from harnesslab.runtime.sandboxes import pins as all_pins
from harnesslab.runtime.sandboxes.layout import PATH

_BY_VARIABLES = (all_pins.GIT_DATES, all_pins.HASH_SEEDS, all_pins.LOCALE, all_pins.TIME_ZONE)
_HELD = frozenset({*_BY_VARIABLES, all_pins.HOST_NAME, all_pins.USER})
_MISSING = "Docker sandboxes don't hold it"


def pins(place: Place) -> tuple[Pin, ...]:
    """Return the pins that were asked for, most of them missing."""
    held = all_pins.hold(place, own_user=False).pins
    return tuple(pin if pin.name in _HELD else Pin(pin.name, "", _MISSING) for pin in held)


def environment(place: Place) -> dict[str, str]:
    """Return a command's environment beside what the image sets."""
    held = all_pins.hold(place, own_user=False).environ
    dropped = ("LD_PRELOAD", "FAKETIME", "FAKERANDOM_SEED")  # the image may not have the library
    own = {"PATH": PATH, "HOME": "/tmp", "TERM": "dumb"}  # noqa: S108
    return {**own, **{name: value for name, value in held.items() if name not in dropped}, **place.environ}
