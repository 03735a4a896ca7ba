"""An error is one sentence: where, what, and what would help."""

from __future__ import annotations

from harnesslab.core import errors


def test_a_sentence_says_where_what_and_what_would_help() -> None:
    assert str(errors.InvalidValue("no such level")) == "no such level"
    error = errors.FormatRefused("not JSON", where="line 3", hint="one object a line")
    assert error.sentence == str(error) == "line 3: not JSON (one object a line)"


def test_every_error_is_caught_as_one() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(issubclass(kind, errors.HarnessLabError) for kind in kinds)
