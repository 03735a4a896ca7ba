"""One module a noun."""

from harnesslab.store.models.annotations import CauseOverride, Note, SavedView
from harnesslab.store.models.audit import AuditEntry, Purge
from harnesslab.store.models.engines import Engine, EngineTicket
from harnesslab.store.models.events import Blob, Chunk, Event, LooseEvent, StoredPath
from harnesslab.store.models.experiments import Experiment
from harnesslab.store.models.jobs import Job, JobState
from harnesslab.store.models.manifests import StoredManifest
from harnesslab.store.models.mirrors import Mirror, Mirrored
from harnesslab.store.models.projects import Case, Panel, PanelRevision, Project
from harnesslab.store.models.reruns import RegressionCase, Rerun
from harnesslab.store.models.rollouts import Rollout
from harnesslab.store.models.sources import SourceFile
from harnesslab.store.models.trainings import Iteration, Memo, Training

__all__ = [
    "AuditEntry",
    "Blob",
    "Case",
    "CauseOverride",
    "Chunk",
    "Engine",
    "EngineTicket",
    "Event",
    "Experiment",
    "Iteration",
    "Job",
    "JobState",
    "LooseEvent",
    "Memo",
    "Mirror",
    "Mirrored",
    "Note",
    "Panel",
    "PanelRevision",
    "Project",
    "Purge",
    "RegressionCase",
    "Rerun",
    "Rollout",
    "SavedView",
    "SourceFile",
    "StoredManifest",
    "StoredPath",
    "Training",
]
