"""Writing the learning memo: a version an iteration, never overwritten."""

from __future__ import annotations

from harnesslab.core.canonical import bytes_digest
from harnesslab.core.training.memo import TITLE, notes_of, written
from harnesslab.queries.trainings.training import concluded, latest_memo
from harnesslab.store.models import Experiment, Iteration, Memo, Project
from harnesslab.store.text import frozen


def keep_memo(
    project: Project, text: str, *, after: Experiment | None = None, iteration: Iteration | None = None
) -> Memo:
    """Keep a version; the same text is the version that is there."""
    digest = bytes_digest(text.encode("utf-8", "surrogatepass"))
    row, _ = Memo.objects.get_or_create(
        project=project,
        digest=digest,
        defaults={"body": frozen({"text": text}), "after": after, "iteration": iteration},
    )
    return row


def write_memo(iteration: Iteration, notes: str | None) -> Memo:
    """Write the memo after an iteration; `notes` is what its proposer made of the last one, None for as it was."""
    project = iteration.training.project
    kept = notes_of(latest_memo(project) if notes is None else notes) or TITLE
    newest = Experiment.objects.filter(project=project).order_by("-pk").first()
    text = written(kept, concluded(project), newest.name if newest is not None else "")
    return keep_memo(project, text, after=newest, iteration=iteration)
