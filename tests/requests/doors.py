"""The doors that a request comes through: a form, the API and a command; each gives back what it says is wrong."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from click.testing import CliRunner
from django.test import Client

from harnesslab.cli import register
from harnesslab.cli.main import cli

register(cli)


def by_form(client: Client, address: str, sent: dict[str, Any], field: str) -> str:
    """Return what stands beside a field of the page that a form answers with."""
    answer = client.post(address, sent)
    assert answer.status_code == 400, answer.content[:200]
    page = answer.content.decode()
    beside = rf'<small class="wrong" id="wrong-{field}">(.*?)\.</small>'
    above = rf"<p>{field.capitalize()}: (.*?)\.</p>"  # of a field that the form doesn't draw
    found = re.search(beside if f'name="{field}"' in page else above, page, re.DOTALL)
    assert found is not None, field
    return html.unescape(found.group(1))


def by_api(client: Client, address: str, document: dict[str, Any]) -> str:
    """Return the API's sentence."""
    answer = client.post(address, json.dumps(document), "application/json")
    assert answer.status_code == 400, answer.content[:200]
    error: str = answer.json()["error"]
    return error


def by_command(*words: str) -> str:
    """Return the line that a command ends with."""
    result = CliRunner().invoke(cli, list(words))
    assert result.exit_code == 1, result.output
    return result.output.strip().splitlines()[-1]
