"""Whether a stored trace is the one that was sealed: nothing runs, it is only read again."""

from __future__ import annotations

from backports import zstd

from harnesslab.core.contracts import comparators
from harnesslab.core.contracts.contract import RAW
from harnesslab.core.errors import Conflict, HarnessLabError
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import RolloutStarted
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.manifests import load_manifest
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Chunk, Rollout


class Consistency(ReadModel):
    """What verifying a stored trace against itself found."""

    rollout: int
    consistent: bool
    events: int
    sentence: str


def check_consistency(rollout_id: int) -> Consistency:
    """Verify a stored trace against its seals, its head, its kept path and its manifest's digest.

    Raises `NotFound`, and `Conflict` where it still runs.
    """
    rollout = get_rollout(rollout_id)
    if rollout.head is None:
        raise Conflict("it still runs, and only an ended trace is sealed", where=f"rollout {rollout_id}")
    wrong = _wrong(rollout)
    if wrong:
        sentence = f"Not consistent: {wrong}."
    else:
        sentence = (
            f"Consistent: all {rollout.events:,} events match their seals, the closing event counts them, and the path "
            f"computed anew is the kept one. Head {bytes(rollout.head).hex()[:8]}. Nothing was run."
        )
    return Consistency(rollout=rollout_id, consistent=not wrong, events=rollout.events, sentence=sentence)


def _wrong(rollout: Rollout) -> str:
    """Say what doesn't hold, or nothing."""
    reader = StoredTraceReader(rollout)
    try:
        trace = reader.trace()
        recorded = reader.seals()
        seals.verify(trace, recorded)
        path = comparators.path(trace, RAW)
    except HarnessLabError as error:
        return error.sentence
    except (zstd.ZstdError, Chunk.DoesNotExist, ValueError, LookupError) as error:
        return f"the stored trace can't be read: {type(error).__name__}"
    if recorded[-1] != bytes(rollout.head or b""):
        return "the last seal is not the head that the rollout keeps"
    if path.head != bytes(rollout.path or b""):
        return "the path computed anew is not the one that is kept"
    started = next((event for event in trace.events if isinstance(event, RolloutStarted)), None)
    if started is not None and started.manifest and load_manifest(rollout.manifest_id).digest != started.manifest:
        return "the manifest is not the one that the trace was begun under"
    return ""
