"""What a process of its own does on a restored home or database: bring it up to date, check it, open every page.

It prints what it came to as JSON; `HARNESSLAB_HOME` and `DATABASE_URL` say of what.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backports import zstd
from django.apps import apps
from django.conf import settings
from django.test import Client

from harnesslab.accounts.models import User
from harnesslab.actions.reruns import lifecycle as reruns
from harnesslab.cli.server.preparation import prepared
from harnesslab.core.canonical import bytes_digest, parse
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.contracts import comparators
from harnesslab.core.contracts.contract import COMPARATOR, Contract
from harnesslab.core.errors import NotComparable
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments.measurements import certificates_of
from harnesslab.queries.reruns.listing import rerun_view
from harnesslab.queries.rollouts.consistency import check_consistency
from harnesslab.queries.rollouts.manifests import load_manifest
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.queries.trainings.training import training_plan
from harnesslab.store.models import Experiment, Job, Rollout, StoredManifest, StoredPath, Training
from harnesslab.store.text import frozen, thawed
from tests.upgrade.walk import Walk
from workers.tasks.jobs import run_job

ADMIN = "admin"


def main(place: str) -> None:
    """Do all of it; `place` is where the home was when it was written."""
    said: list[str] = []
    prepared(said.append, demo=False)
    move(place)
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get(username=ADMIN))
    walk = Walk(client)
    walk.all()
    report = {
        "prepared": said,
        "rollouts": Rollout.objects.exclude(outcome=Outcome.RUNNING).count(),
        "wrong rollouts": list(wrong_rollouts()),
        "manifests": StoredManifest.objects.count(),
        "wrong manifests": list(wrong_manifests()),
        "certificates": sum(len(certificates_of(row)) for row in Experiment.objects.all()),
        "wrong certificates": list(wrong_certificates()),
        "paths": StoredPath.objects.count(),
        "wrong paths": list(wrong_paths()),
        "trainings": Training.objects.count(),
        "lost patches": list(lost_patches()),
        "pages": len(walk.answers),
        "failed pages": {page: status for page, status in walk.answers.items() if status != 200},
        "views that were not opened": walk.unopened(),
        "rows": {each.__name__: each._default_manager.count() for each in apps.get_app_config("store").get_models()},
        "rerun": rerun_again(),
    }
    json.dump(report, sys.stdout)


def move(place: str) -> None:
    """Name the harness's repository by where the home is now, as whoever moves a home must."""
    here = str(settings.CONFIG.home)
    for rollout in Rollout.objects.exclude(recipe=b""):
        recipe = json.loads(json.dumps(thawed(rollout.recipe)).replace(place, here))
        Rollout.objects.filter(pk=rollout.pk).update(recipe=frozen(recipe))


def wrong_rollouts() -> Iterator[tuple[int, str]]:
    """Yield the ended rollouts whose trace is not the one that was sealed."""
    for pk in Rollout.objects.exclude(outcome=Outcome.RUNNING).values_list("pk", flat=True):
        found = check_consistency(pk)
        if not found.consistent:
            yield pk, found.sentence


def lost_patches() -> Iterator[str]:
    """Yield the folders of patch queues that are not there, so that their trainings could not go on."""
    for training in Training.objects.all():
        folder = training_plan(training).proposer.folder
        if folder and not Path(folder).is_dir():
            yield folder


def wrong_manifests() -> Iterator[str]:
    """Yield the stored manifests that are not what their digest says, or are not digested to it any more."""
    for row in StoredManifest.objects.all():
        body = zstd.decompress(bytes(row.body))
        manifest = Manifest.from_json(parse(body))
        if not row.digest == bytes_digest(body) == manifest.digest or manifest.canonical() != body:
            yield row.digest


def wrong_certificates() -> Iterator[tuple[str, str]]:
    """Yield the certificates that hold for an identity which no rollout of the case has any more."""
    for row in Experiment.objects.all():
        for case, certificate in certificates_of(row).items():
            rollouts = Rollout.objects.filter(case__name=case, project=row.project_id)
            identities = {load_manifest(each).identity for each in rollouts.values_list("manifest_id", flat=True)}
            if certificate.identity and certificate.identity not in identities:
                yield row.name, case


def wrong_paths() -> Iterator[tuple[int, str]]:
    """Yield the kept paths that their contract gives no more."""
    for row in StoredPath.objects.filter(contract__startswith=COMPARATOR).select_related("rollout"):
        _, level, scope, rules = row.contract.split("|")
        contract = Contract.parse(level, rules or "none", "" if scope == "all" else scope)
        if contract.key != row.contract or path_of(row.rollout, contract) != bytes(row.path):
            yield row.rollout_id, row.contract


def path_of(rollout: Rollout, contract: Contract) -> bytes:
    """Return a rollout's path under a contract; nothing where its trace lacks what the contract compares."""
    try:
        return comparators.path(StoredTraceReader(rollout).trace(), contract).path
    except NotComparable:
        return b""


def rerun_again() -> dict[str, Any]:
    """Rerun a stored live rollout from its record, in a real sandbox, and say what it showed."""
    parent = Rollout.objects.filter(grade="live-rerunnable", mode="", project__name="demonstration").earliest("pk")
    rerun = reruns.request(parent.pk, RerunPlan(mode=Mode.RECORDED), user=None)
    for job in Job.objects.filter(group=f"rerun {rerun.pk}"):
        run_job(job.pk)
    view = rerun_view(rerun.pk)
    return {"ended": view.ended, "same": [row.same for row in view.attempts], "sentence": view.sentence}
