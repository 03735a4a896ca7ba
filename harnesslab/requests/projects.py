"""Binding a project to the harness that it measures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
from pydantic import Field

from harnesslab.core.measuring.experiments import Binding
from harnesslab.core.running.recipe import HarnessKind, HarnessSource
from harnesslab.requests.refusals import refused
from harnesslab.requests.schema import RequestSchema
from harnesslab.requests.values import Command, Name, choice, text, texts


def _repository(text: str) -> None:
    if not text:
        raise refused("which repository?", "its revisions are what is measured")


class BindingRequest(RequestSchema):
    """The git repository of a harness, and how the harness is started."""

    noun: ClassVar[str] = "binding"
    repository: Annotated[str, text(_repository)] = Field(description="A git repository: a folder or an address.")
    branch: Name = Field(default="main", description="The branch that promotions fast-forward.")
    kind: Annotated[HarnessKind, choice(HarnessKind, HarnessKind, "kind of harness")] = Field(
        default=HarnessKind.LOOP, description="A module that asks the worker for everything, or a program."
    )
    entry: Name = Field(default="harness", description="Of a loop harness: the module to run.")
    command: Command = Field(default=(), description="Of a command harness: the program and its arguments.")
    surface: Annotated[tuple[str, ...], texts(str.split)] = Field(
        default=(), description="Patterns of the files that a candidate may change; *.py where none is named."
    )

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.kind is HarnessKind.COMMAND and not self.command:
            raise refused("a command harness needs a command", field="command")

    def to_binding(self, project: str, before: Binding | None = None) -> Binding:
        """Return the binding; what a request can't say stays as it was before."""
        known = before or Binding(HarnessSource("", ""))
        source = msgspec.structs.replace(
            known.harness,
            name=known.harness.name or Path(self.repository).name.removesuffix(".git") or project,
            repository=self.repository,
            kind=self.kind,
            entry=self.entry or "harness",
            command=self.command,
        )
        return msgspec.structs.replace(
            known, harness=source, branch=self.branch or "main", surface=self.surface or ("*.py",)
        )
