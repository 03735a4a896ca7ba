"""Uploaded files: small ones are imported at once, large ones are spooled and become jobs."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile as AnyUpload

from harnesslab.accounts.models import User
from harnesslab.actions.imports.importing import ImportResult, import_units
from harnesslab.actions.jobs.lifecycle import enqueue
from harnesslab.core.errors import InvalidValue
from harnesslab.formats.discovery import expand
from harnesslab.formats.reading.inputs import MAX_FILE, InputFile, Unit
from harnesslab.store.locks import held
from harnesslab.store.models import Job
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import storable

Upload: TypeAlias = "AnyUpload[bytes]"
INLINE_BYTES = 20 * 2**20
"""Files larger than this are imported by a job."""
ABANDONED_S = 3600.0
"""An upload without a job is kept this long: its job may be about to be queued."""


def receive(files: Iterable[Upload], project: str, user: User) -> list[dict[str, Any]]:
    """Import or spool uploads; returns one result a file, in order. Raises `InvalidValue` where there is none."""
    results: list[dict[str, Any]] = []
    for file in files:
        name = storable(Path(file.name or "upload").name)
        if (file.size or 0) > MAX_FILE:
            results.append(_answer(name, "refused", f"{name}: larger than the limit of {MAX_FILE:,} bytes"))
            continue
        if (file.size or 0) > INLINE_BYTES:
            results.append(_spool(file, name, project, user))
            continue
        file.seek(0)
        unit = Unit(name, {name: InputFile.of_bytes(name, file.read())})
        results += [asdict(result) for result in import_units(expand(unit), project=project)]
    if not results:
        raise InvalidValue("no file was sent", hint="send them as `files`")
    return results


def _spool(file: Upload, name: str, project: str, user: User) -> dict[str, Any]:
    """Keep an upload for a job; the same bytes that wait for one already get that one, as after a double click."""
    folder = _spool_folder() / secrets.token_hex(8)
    folder.mkdir(parents=True)
    place = folder / "upload"
    content = hashlib.sha256()
    with place.open("wb") as handle:
        for chunk in file.chunks():
            handle.write(chunk)
            content.update(chunk)
    digest = content.hexdigest()
    payload: dict[str, object] = {"path": str(place), "name": name, "project": project, "digest": digest}
    with held(f"upload {digest}"):  # else two requests could both find no job, and queue two
        job = Job.objects.filter(payload__digest=digest, payload__project=project).exclude(state__in=ENDED).first()
        if job is None:
            job = enqueue("import", payload, user=user)
        else:
            discard_upload(payload)
    return _answer(name, "queued") | {"job": job.pk}


def _answer(name: str, status: str, reason: str = "") -> dict[str, Any]:
    return asdict(ImportResult(name, status, reason=reason))


def _spool_folder() -> Path:
    return Path(settings.CONFIG.home) / "spool"


def run_import(payload: dict[str, Any], progress: Callable[[int, str], bool]) -> dict[str, Any]:
    """Do an import job; `progress(rollouts, message)` returns False to stop. What is stored by then stays."""
    place = Path(payload["path"])

    def report(count: int) -> None:
        if not progress(count, f"{count} rollouts stored"):
            raise InterruptedError

    unit = Unit(payload["name"], {payload["name"]: InputFile.of_path(place)})
    try:
        results = [asdict(result) for result in import_units(expand(unit), project=payload["project"], progress=report)]
    except InterruptedError:
        return {"results": [], "cancelled": True}
    return {"results": results}


def discard_abandoned() -> int:
    """Remove old uploads that no job waits for: of jobs cancelled before they began; returns how many."""
    folder = _spool_folder()
    found = list(folder.iterdir()) if folder.exists() else []
    old = [place for place in found if place.stat().st_mtime < time.time() - ABANDONED_S]
    if not old:
        return 0
    paths = Job.objects.filter(kind="import").exclude(state__in=ENDED).values_list("payload__path", flat=True)
    waited = {Path(path).parent for path in paths if path}
    gone = [place for place in old if place not in waited]
    for place in gone:
        shutil.rmtree(place, ignore_errors=True)
    return len(gone)


def discard_upload(payload: dict[str, Any]) -> None:
    """Remove an upload's spooled file once its job has ended; another attempt would need it until then."""
    shutil.rmtree(Path(payload["path"]).parent, ignore_errors=True)
