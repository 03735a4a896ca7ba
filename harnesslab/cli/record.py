"""`harnesslab record`: a person's own agent from the shell, recorded as it runs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
from django.conf import settings
from django.db import connections

from harnesslab.actions.engines import slots
from harnesslab.actions.engines.guarded import GuardedEngine
from harnesslab.actions.engines.registration import EMBEDDED_NAME, ensure_embedded
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.jobs.leases import HeldLease
from harnesslab.actions.rollouts.recorder import Placement, Recorder, RolloutEnding
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.server.serve import answers
from harnesslab.cli.terminal import printable
from harnesslab.config import served_at
from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.ports import EnginePort
from harnesslab.core.running.rollout import Origin, Outcome, Recording, Replayability, Source
from harnesslab.core.trace.trace import Trace
from harnesslab.queries.engines import engine_named
from harnesslab.runtime.driver.agent import AgentBoundary
from harnesslab.runtime.driver.command import variables
from harnesslab.runtime.driver.episode import DrivenEpisode, Ended
from harnesslab.runtime.driver.inbox import Inbox
from harnesslab.runtime.driver.outside import Nowhere, conditions, recipe_of, run_outside
from harnesslab.runtime.engines.catalogue import engine as make_engine
from harnesslab.runtime.engines.hosting import hosted
from harnesslab.runtime.gateway.server import served

MISSING = "harness: a command of its owner's shell, which no worker can run again"


@dataclass(frozen=True, slots=True)
class Upstream:
    """The model server that answers."""

    name: str
    model: str
    engine: EnginePort
    seed_honoured: bool | None = None


@click.command("record", context_settings={"ignore_unknown_options": True})
@click.option("--case", default="", help="Name of the case; without it the command's.")
@click.option("--project", default="recorded", show_default=True, help="Project that it belongs to.")
@click.option("--engine", default="", help=f"A registered engine; without it {EMBEDDED_NAME}.")
@click.option("--upstream", default="", help="An OpenAI-compatible server instead: its address up to /v1.")
@click.option("--model", default="", help="With --upstream: the model's name there.")
@click.option("--key-env", default="OPENAI_API_KEY", show_default=True, help="Variable that holds the upstream's key.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def record(
    case: str, project: str, engine: str, upstream: str, model: str, key_env: str, command: tuple[str, ...]
) -> None:
    """Run COMMAND with its model calls recorded; give its own options after `--`."""
    ready_tables()
    name = Path(command[0]).name
    with _upstream(engine, upstream, model, key_env) as asked:
        tell(f"recording {name} against {asked.name}; it runs in your shell, outside any sandbox")
        code, recorder = _recorded(asked, case or name, project, command)
    tell(f"{recorder.rollout.outcome}: {address_of(recorder.rollout.pk)}")
    sys.exit(code)


def tell(line: str) -> None:
    """Say something beside the command's own output."""
    click.echo(printable(f"harnesslab: {line}"), err=True)


@contextlib.contextmanager
def _upstream(name: str, address: str, model: str, key_env: str) -> Iterator[Upstream]:
    """Have a model server for the length of the block; raises `InvalidValue` or `EngineDown`."""
    home = settings.CONFIG.home
    with contextlib.ExitStack() as stack:
        if address:
            if name:
                raise InvalidValue("name an engine or an upstream, not both", where="--upstream")
            options: dict[str, JSON] = {"api_key_env": key_env} if os.environ.get(key_env) else {}
            client = make_engine("openai", address, model, options, home)
            stack.callback(client.close)
            yield Upstream(address, model, client)
            return
        if not name:
            ensure_embedded()
        row = engine_named(name or EMBEDDED_NAME)
        if row.kind == "embedded":
            stack.enter_context(hosted(home))
        client = make_engine(row.kind, row.address, row.model, row.options, home)
        stack.callback(client.close)
        guarded = GuardedEngine(client, slots.slots(), row.pk, row.ceiling, row.model, lambda: False)
        yield Upstream(row.name, row.model, guarded, row.seed_honoured)


def _recorded(asked: Upstream, case: str, project: str, command: tuple[str, ...]) -> tuple[int, Recorder]:
    name = Path(command[0]).name
    document = conditions(name, case, asked.engine.conditions())
    inbox = Inbox(lambda: [asked.model])
    job, token = jobs.begin("record", {"command": printable(name)})
    with HeldLease(job.pk, token, lambda: False) as lease, served(inbox) as gateway:
        recorder = Recorder(_recording(document, asked, name, case, project), Placement(job=job.pk))
        episode = DrivenEpisode(
            recipe_of(name, case, asked.name),
            recorder,
            asked.engine,
            Nowhere(),
            stopped=lease.stopped,
            seed_honoured=asked.seed_honoured,
            model=asked.model,
        )
        boundary = AgentBoundary(episode, inbox, connections.close_all, governed=False)
        environ = {**os.environ, **variables(f"{gateway.address(gateway.port)}/v1")}
        try:
            code, end = run_outside(episode, boundary, command, environ, document.digest)
        except BaseException as error:
            recorder.finish(RolloutEnding(Outcome.INFRA_ERROR, error=f"{type(error).__name__}: {error}"))
            jobs.fail(job.pk, token, f"{type(error).__name__}: {error}")
            raise
        recorder.rollout = recorder.finish(_ending(end, code, episode, inbox))
        if not jobs.finish(job.pk, token, {"rollout": recorder.rollout.pk}):
            jobs.stop(job.pk, token)
        return code, recorder


def _ending(end: Ended, code: int, episode: DrivenEpisode, inbox: Inbox) -> RolloutEnding:
    facts: dict[str, JSON] = {"counts": episode.counts.to_json(), "agent": {"exit_code": code}}
    facts |= {"why": end.why} if end.why else {}
    facts |= {"gateway_refused": inbox.refusals} if inbox.refusals else {}
    return RolloutEnding(end.outcome, error=end.why or None, facts=facts)


def _recording(document: Manifest, asked: Upstream, name: str, case: str, project: str) -> Recording:
    return Recording(
        manifest=document,
        trace=Trace((), (), ()),
        outcome=Outcome.RUNNING,
        case=case,
        source=Source("record", document.digest, "record"),
        project=project,
        harness=name,
        model=asked.model,
        engine=asked.name,
        origin=Origin.LIVE,
        replayability=Replayability.VIEW_ONLY,
        missing=MISSING,
        started_at=datetime.now(UTC),
    )


def address_of(rollout_id: int) -> str:
    """Return a rollout's page where a server runs on this home, else its id."""
    address = served_at(settings.CONFIG.home)
    if address and answers(f"{address}/"):
        return f"{address}/rollouts/{rollout_id}/"
    return f"rollout {rollout_id}; `harnesslab serve` shows it"
