"""What htmx is answered is markup, under the same rules as every page."""

from __future__ import annotations

import pytest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import Client, RequestFactory
from django_htmx.middleware import HtmxDetails

from harnesslab.pages.swaps import SwapsAreMarkup
from tests.pages.conftest import Stored


def test_an_answer_that_became_markup_is_held_by_the_policy_too(as_viewer: Client, stored: Stored) -> None:
    address = f"/compare/report.json?a={stored.first.pk}&b={stored.other.pk}"
    answer = as_viewer.get(address, headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "script-src" in answer.headers["Content-Security-Policy"]
    assert b'"' not in answer.content


def swapped(answer: HttpResponseBase) -> HttpResponseBase:
    request: HttpRequest = RequestFactory().get("/", headers={"HX-Request": "true"})
    request.htmx = HtmxDetails(request)  # type: ignore[attr-defined]
    return SwapsAreMarkup(lambda _: answer)(request)


@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
def test_the_other_headers_of_an_answer_stay(kind: str) -> None:
    answer = swapped(HttpResponse("<b>", status=429, content_type=kind, headers={"Retry-After": "7"}))
    assert isinstance(answer, HttpResponse)
    assert (answer.status_code, answer.content, answer.headers["Retry-After"]) == (429, b"&lt;b&gt;", "7")
    assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.django_db  # closing an answer ends a request
def test_a_file_that_is_sent_piece_by_piece_is_no_part_of_a_page() -> None:
    assert swapped(StreamingHttpResponse([b"<b>"], content_type="application/zip")).status_code == 406
