"""Canonical JSON: one form for one value, whatever was recorded."""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.canonical import MAX_DEPTH, canonical_bytes, digest, nested_within, parse, with_numbers
from harnesslab.core.errors import NotCanonical
from tests.core.traces import NUMBERS, TEXTS, VALUES


@given(VALUES)
def test_writing_reading_and_writing_gives_the_same_bytes(value: Any) -> None:
    written = canonical_bytes(value)
    assert canonical_bytes(parse(written)) == written
    assert canonical_bytes(with_numbers(parse(written))) == written
    json.loads(written.decode("utf-8"), parse_constant=pytest.fail)  # strict JSON in valid UTF-8


@given(st.dictionaries(TEXTS, NUMBERS, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert canonical_bytes(dict(items)) == canonical_bytes(value)


@given(VALUES)
def test_it_is_rfc_8785_wherever_that_accepts_a_value(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        return
    assert canonical_bytes(value) == expected


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1))
def test_numbers_are_written_as_rfc_8785_writes_them(number: float) -> None:
    assert canonical_bytes(number) == rfc8785.dumps(number)


@given(st.integers())
def test_no_digit_of_an_integer_is_lost(number: int) -> None:
    read = parse(canonical_bytes(number))
    assert str(number) == (read["$number"] if isinstance(read, dict) else str(read))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.nan, b'{"$number":"NaN"}'),
        (-math.inf, b'{"$number":"-Infinity"}'),
        (2**53 + 1, b'{"$number":"9007199254740993"}'),
        (10**20, b"100000000000000000000"),
        (1e20, b"100000000000000000000"),
        (10**21, b'{"$number":"1000000000000000000000"}'),
        (1e21, b"1e+21"),
        (-0.0, b"0"),
        ("\x00", b'"\\u0000"'),
        ("\udcb2 ok", b'"\\udcb2 ok"'),
        ("\ud83d\ude00", '"😀"'.encode()),
        ({"\U0001f600": 1, "\ufb33": 2}, '{"😀":1,"\ufb33":2}'.encode()),
        ((1, [2]), b"[1,[2]]"),
        (MappingProxyType({"b": 1, "a": MappingProxyType({})}), b'{"a":{},"b":1}'),
    ],
)
def test_what_json_has_no_form_for_has_one_here(value: Any, written: bytes) -> None:
    assert canonical_bytes(value) == written


@given(TEXTS, TEXTS)
def test_unequal_texts_have_unequal_digests(a: str, b: str) -> None:
    joined = [text.encode("utf-16", "surrogatepass") for text in (a, b)]
    assert (digest(a) == digest(b)) == (joined[0] == joined[1])


@pytest.mark.parametrize("value", [b"bytes", {1: "a"}, {"a": {1, 2}}, object()])
def test_what_is_not_json_is_refused_with_a_sentence(value: Any) -> None:
    with pytest.raises(NotCanonical, match="a"):
        canonical_bytes(value)


def test_json_nested_without_end_is_refused() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert canonical_bytes(value)
    assert nested_within(value, MAX_DEPTH)
    assert not nested_within(value, MAX_DEPTH - 1)
    with pytest.raises(NotCanonical, match="nested deeper than 200 levels"):
        canonical_bytes([value])


@pytest.mark.parametrize("text", ["{", "", "nul", '{"a":}', "[" * 100_000])
def test_damaged_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_bytes_that_are_no_utf_8_are_kept() -> None:
    assert parse(b'"\xff"') == "\udcff"
    assert parse(b"[NaN, 1e999]") == [pytest.approx(math.nan, nan_ok=True), math.inf]


@pytest.mark.parametrize("digits", ["9" * 5000, "-" + "9" * 5000])
def test_an_integer_of_any_length_is_read_and_written_again(digits: str) -> None:
    value = parse(b'{"a": [%s]}' % digits.encode())
    assert value == {"a": [{"$number": digits}]}
    assert canonical_bytes(parse(canonical_bytes(value))) == canonical_bytes(value)
    assert with_numbers(value) == value
