"""Pictures, audio and files are parts with type, size, dimensions and digest, whatever dialect wrote them."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given

from harnesslab.core.trace.messages import result_of, text_of, view
from harnesslab.core.trace.parts import Part, other_parts, parts_of
from harnesslab.core.trace.picture_size import PictureSize, picture_size
from tests.core.trace.pictures import address, dialects, png, written
from tests.core.traces import VALUES

PICTURE = png(3, 2)
OTHER = png(3, 2, 9)
PDF = address(b"%PDF", "application/pdf")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("dialect", dialects(PICTURE))
def test_a_picture_is_the_same_part_in_every_dialect(dialect: str) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "what is it?"}, dialects(PICTURE)[dialect]]}
    (part,) = view(message).parts
    assert (part.kind, part.media, part.size, part.width, part.height, part.digest) == (
        "image", "image/png", len(PICTURE), 3, 2, digest(PICTURE),
    )  # fmt: skip
    assert view(message).text == f"what is it?\n[image/png 3×2, {len(PICTURE)} bytes, sha256 {digest(PICTURE)[:16]}]"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            Part("image", link="https://example.org/a.png"),
        ),
        ({"type": "input_image", "file_id": "file-1"}, Part("image", link="file-1")),
        (
            {"type": "image", "source": {"media_type": "image/png", "path": "images/1.png"}},
            Part("image", "image/png", link="images/1.png"),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": written(b"abc"), "format": "wav"}},
            Part("audio", "audio/wav", 3, digest=digest(b"abc")),
        ),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
            Part("file", "application/pdf", 4, digest=digest(b"%PDF"), name="a.pdf"),
        ),
        (
            {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "é"}},
            Part("file", "text/plain", 2, digest=digest("é".encode()), name="t"),
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "image/png", "blob": written(PICTURE)}},
            Part("image", "image/png", len(PICTURE), 3, 2, digest(PICTURE), link="file:///a"),
        ),
        ({"type": "image", "data": "not base64 at all!"}, Part("image", link="not base64 at all!")),
        ({"type": "image_url", "image_url": {}}, Part("image")),
    ],
)
def test_what_is_known_of_a_part(value: dict[str, Any], expected: Part) -> None:
    assert parts_of([value]) == (expected,)


def test_a_link_is_shown_as_one() -> None:
    assert (
        text_of([{"type": "image_url", "image_url": "http://h/x.png"}])
        == "[image, at http://h/x.png, not in the record]"
    )


def test_several_pictures_in_one_item_are_several_parts() -> None:
    both = {"type": "image", "image_urls": [address(PICTURE), address(OTHER)]}
    assert [part.digest for part in parts_of([both])] == [digest(PICTURE), digest(OTHER)]


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "tool", "tool_call_id": "1", "content": [dialects(PICTURE)["chat"]]},
        {"type": "function_call_output", "call_id": "1", "output": [dialects(PICTURE)["responses"]]},
        {"type": "computer_call_output", "call_id": "1", "output": dialects(PICTURE)["screenshot"]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": [dialects(PICTURE)["anthropic"]]}],
        },
    ],
)
def test_the_result_of_a_call_keeps_its_picture(answer: dict[str, Any]) -> None:
    (part,) = parts_of(result_of(answer))
    assert part.digest == digest(PICTURE)


def test_the_result_of_a_call_without_parts_is_its_text() -> None:
    assert (
        result_of({"role": "tool", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}) == "a\nb"
    )


def test_values_that_differ_in_a_part_alone_say_which() -> None:
    def said(text: str, data: bytes, kind: str = "chat") -> Any:
        return [{"type": "text", "text": text}, dialects(data)[kind]]

    assert other_parts(said("x", PICTURE), said("x", OTHER)) == "picture"
    assert other_parts(said("x", PICTURE), said("x", OTHER, "chat, as text")) == "picture"
    assert other_parts(said("x", PICTURE), said("x", PICTURE)) == ""
    assert other_parts(said("x", PICTURE), said("y", OTHER)) == ""
    assert other_parts("x", "y") == ""


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (png(640, 480), PictureSize("image/png", 640, 480)),
        (b"GIF89a\x05\x00\x04\x00", PictureSize("image/gif", 5, 4)),
        (b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x00\x07\x00\x09\x03", PictureSize("image/jpeg", 9, 7)),
        (b"\xff\xd8\xff", PictureSize("image/jpeg")),
        (
            b"RIFF\x00\x00\x00\x00WEBPVP8X" + b"\x0a\x00\x00\x00\x00\x00\x00\x00\x63\x00\x00\x31\x00\x00",
            PictureSize("image/webp", 100, 50),
        ),
        (b"\x89PNG\r\n\x1a\n", PictureSize("image/png")),
        (b"nothing", None),
    ],
)
def test_dimensions_are_read_from_the_first_bytes(data: bytes, size: PictureSize | None) -> None:
    assert picture_size(data) == size


@given(VALUES)
def test_any_value_can_be_looked_through(value: Any) -> None:
    for content in (value, {"type": "image", "source": value}, [{"type": "file", "file": value, "data": value}]):
        assert all(str(part) and part.to_json() for part in parts_of(content))
