"""The job that certifies one case of an experiment: each of its trials is run again in a fresh sandbox."""

from __future__ import annotations

from typing import Any

import msgspec

from harnesslab.core.errors import HarnessLabError, NotFound
from harnesslab.core.measuring.certification import Certificate, CertificateVerdict, Fork
from harnesslab.queries.experiments.measurements import rollouts_of
from harnesslab.queries.reruns.listing import recipe_of
from harnesslab.queries.rollouts.manifests import load_manifest
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.runtime.driver.audit import audit
from harnesslab.runtime.sandboxes.choice import sandboxes_for
from workers.tasks.job_runs import JobRun

_WORST = (CertificateVerdict.FORKED, CertificateVerdict.NO_CHAIN, CertificateVerdict.DETERMINISTIC)


def run_certification(attempt: JobRun) -> dict[str, Any]:
    """Audit a case; the worst of its trials is its certificate."""
    case = str(attempt.payload["case"])
    rows = rollouts_of(int(attempt.payload["experiment"]), case)
    if not rows:
        raise NotFound(f"no rollout of {case!r} is left to certify")
    found = []
    for place, row in enumerate(rows):
        if attempt.stopped():
            return {"cancelled": True}
        identity = load_manifest(row.manifest_id).identity
        trace = StoredTraceReader(row).trace()
        try:
            found.append(audit(recipe_of(row), trace, identity, sandboxes_for, attempt.stopped))
        except HarnessLabError:
            if attempt.stopped():  # which is why it came to no end
                return {"cancelled": True}
            raise
        attempt.progress(place + 1, f"{case}: {found[-1].verdict.value}")
    worst = min(found, key=lambda each: _WORST.index(each.verdict))
    return {"certificate": _storable(worst).to_json()}


def _storable(found: Certificate) -> Certificate:
    """Return a certificate whose texts every database takes."""
    fork = found.fork
    if fork is not None:
        shown = {name: _clean(getattr(fork, name)) for name in ("command", "recorded", "live")}
        fork = Fork(fork.place, what=fork.what, **shown)
    return msgspec.structs.replace(found, fork=fork, why=_clean(found.why))


def _clean(text: str) -> str:
    return text.replace("\x00", "␀").encode("utf-8", "replace").decode()
