"""Which sandboxes a recipe runs in."""

from __future__ import annotations

from harnesslab.core.running.ports import Sandboxes
from harnesslab.core.running.recipe import Recipe
from harnesslab.runtime.sandboxes.available import sandboxes


def sandboxes_for(recipe: Recipe) -> Sandboxes:
    """Return what makes the case's sandboxes: containers where it names an image, else this machine's own."""
    return sandboxes(recipe.case.image)["docker" if recipe.case.image else "bubblewrap"]
