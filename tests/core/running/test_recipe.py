"""A recipe and its case come back as they were stored, and seeds depend on stable names alone."""

from __future__ import annotations

import pytest

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.cases import Budgets, CaseDefinition, SimulatedUser, Verifier
from harnesslab.core.running.recipe import HarnessKind, HarnessSource, Recipe, SideEffects

CASE = CaseDefinition(
    "copy",
    "Copy a to b.",
    {"a": "one\n"},
    setup=("chmod 600 a",),
    verifier=Verifier({"equal": "cmp a b"}),
    budgets=Budgets(steps=3),
    user=SimulatedUser(replies=("yes",)),
)
RECIPE = Recipe(
    HarnessSource("reference", "/repository", "r1", kind=HarnessKind.LOOP),
    CASE,
    "SmolLM2",
    settings={"temperature": 0.5},
    root_seed=str(2**62),
    tools={"run": SideEffects.SANDBOXED},
)


def test_a_recipe_comes_back_as_it_was() -> None:
    assert Recipe.from_json(RECIPE.to_json()) == RECIPE


def test_a_recipe_with_an_unknown_key_is_refused_by_name() -> None:
    document = RECIPE.to_json()
    assert isinstance(document, dict)
    with pytest.raises(InvalidValue, match="colour"):
        Recipe.from_json({**document, "colour": "blue"})


def test_a_case_comes_back_as_it_was_and_its_digest_names_its_content() -> None:
    assert CaseDefinition.from_json(CASE.to_json()) == CASE
    assert CaseDefinition("copy", "Copy a to b.").digest != CASE.digest


@pytest.mark.parametrize("document", [None, [], {"schema": "other"}, {"schema": "harnesslab.case/1", "name": 3}])
def test_what_is_no_case_is_refused(document: JSON) -> None:
    with pytest.raises(InvalidValue):
        CaseDefinition.from_json(document)


def test_seeds_fit_in_31_bits_and_differ_by_stream_call_and_trial() -> None:
    seeds = {RECIPE.seed("sampling"), RECIPE.seed("sampling", 1), RECIPE.seed("user")}
    assert len(seeds) == 3
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert RECIPE.seed("sampling") == Recipe.from_json(RECIPE.to_json()).seed("sampling")
