"""What an OpenAI-compatible server discloses of itself, and what a registration may say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Known, Manifest, Provenance, Unknown
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.ports import EngineDown
from harnesslab.runtime.engines.catalogue import KINDS, engine
from harnesslab.runtime.engines.configuration import Configuration, bundled_model
from harnesslab.runtime.engines.openai import OpenAIEngine, OpenAISettings
from tests.runtime.engines.loopback import Record, replaying


def server(**answers: JSON) -> Record:
    """Return what a server answers to questions: path with underscores to document."""
    said = [(f"/{name.replace('__', '/')}", document) for name, document in answers.items()]
    return Record(
        [
            {
                "request": Record.key("GET", path, b""),
                "status": 200,
                "type": "application/json",
                "body": json.dumps(document),
            }
            for path, document in said
        ]
    )


def test_a_vllm_server_tells_its_version_and_little_else() -> None:
    with replaying(server(v1__models={"data": [{"id": "m", "owned_by": "vllm"}]}, version={"version": "0.32.0"})) as at:
        stated = OpenAIEngine(f"{at}/v1", "m", OpenAISettings(provider="us")).conditions()
    assert stated["engine.name"] == Known("vLLM", Provenance.SERVER)
    assert stated["engine.version"] == Known("0.32.0", Provenance.SERVER)
    assert stated["model.provider"] == Known("us", Provenance.CONFIGURED)
    assert stated["model.weights_digest"] == Unknown("the server does not disclose it")
    assert Manifest.from_conditions(stated, unknown="not of the engine").completeness[0] == 4


def test_a_hosted_server_tells_nothing() -> None:
    with replaying(server(v1__models={"data": [{"id": "m", "owned_by": "system"}, "odd"]})) as at:
        stated = OpenAIEngine(f"{at}/v1", "m").conditions()
    assert [name for name, condition in stated.items() if isinstance(condition, Known)] == ["model.name"]


def test_a_server_that_is_down_says_so() -> None:
    gone = OpenAIEngine("http://127.0.0.1:9/v1", "m")
    with pytest.raises(EngineDown, match="no answer from"):
        gone.conditions()
    assert not gone.health().up


@pytest.mark.parametrize(
    ("kind", "address", "model", "options", "words"),
    [
        ("vllm", "http://h", "m", {}, "no such kind of engine"),
        ("openai", "h:80", "m", {}, "not the address of a server"),
        ("openai", "ftp://h", "m", {}, "not the address of a server"),
        ("openai", "http://user:pass@h", "m", {}, "not the address of a server"),
        ("openai", "http://h", " ", {}, "no name"),
        ("openai", "http://h", "m", {"api_key": "sk"}, "never kept"),
        ("openai", "http://h", "m", {"api_key_env": "HARNESSLAB_NO_SUCH_KEY"}, "is not set"),
        ("openai", "http://h", "m", {"api_key_env": "A B"}, "not the name of an environment variable"),
        ("openai", "http://h", "m", {"logprobs": 21}, "a whole number from 0 to 20"),
        ("openai", "http://h", "m", {"extra": []}, "not an object"),
        ("sglang", "http://h", "m", {"endpoint": "complete"}, "one of chat, generate"),
        ("sglang", "http://h", "m", {"seed_honored": True}, "no option of a sglang engine"),
        ("embedded", "http://h", "", {}, "has no address"),
        ("embedded", "", "", {"threads": 0}, "a whole number from 1"),
        ("embedded", "", "", {"n_batch": True}, "a whole number"),
        ("embedded", "", "", {"model_file": "/no/such.gguf"}, "no such file"),
    ],
)
def test_what_is_wrong_with_a_registration_is_said(
    kind: str, address: str, model: str, options: dict[str, JSON], words: str
) -> None:
    with pytest.raises(InvalidValue, match=words):
        engine(kind, address, model, options, Path("/nowhere"))


def test_every_kind_is_made() -> None:
    assert KINDS == ("embedded", "openai", "sglang")
    for kind, address in (("embedded", ""), ("openai", "https://h/v1"), ("sglang", "http://[::1]:30000/")):
        engine(kind, address, "m", {}, Path("/nowhere")).close()


def test_a_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESSLAB_TEST_KEY", "sk-secret\n")
    made = engine("openai", "http://h", "m", {"api_key_env": "HARNESSLAB_TEST_KEY"}, Path("/nowhere"))
    assert "sk-secret" not in repr(vars(made))


def test_a_configuration_reads_what_it_wrote() -> None:
    one = Configuration(str(bundled_model()), flash_attention=True, threads=2, n_batch=64, slots=3)
    assert Configuration.from_json(one.to_json()) == one
    with pytest.raises(InvalidValue):
        Configuration.from_json({**one.to_json(), "gpu": 1})
