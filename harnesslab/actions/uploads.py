"""Uploaded files: small ones are imported at once, large ones are spooled and become jobs."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile as AnyUpload

from harnesslab.accounts.models import User
from harnesslab.actions.imports import import_units
from harnesslab.actions.jobs import enqueue
from harnesslab.core.errors import InvalidValue
from harnesslab.formats.discovery import expand
from harnesslab.formats.inputs import InputFile, Unit

Upload: TypeAlias = "AnyUpload[bytes]"
INLINE_BYTES = 20 * 2**20
"""Files larger than this are imported by a job."""


def receive(files: Iterable[Upload], project: str, user: User) -> list[dict[str, Any]]:
    """Import or spool uploads; returns one result a file, in order. Raises `InvalidValue` where there is none."""
    results: list[dict[str, Any]] = []
    for file in files:
        name = Path(file.name or "upload").name
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
    folder = Path(settings.CONFIG.home) / "spool" / secrets.token_hex(8)
    folder.mkdir(parents=True)
    place = folder / (name or "upload")
    with place.open("wb") as handle:
        for chunk in file.chunks():
            handle.write(chunk)
    payload: dict[str, object] = {"path": str(place), "name": name, "project": project}
    job = enqueue("import", payload, user=user)
    return {"file": name, "status": "queued", "job": job.pk, "rollouts": [], "reason": "", "skipped": [], "format": ""}


def run_import(payload: dict[str, Any], progress: Callable[[int, str], bool]) -> dict[str, Any]:
    """Do an import job; `progress(rollouts, message)` returns False to stop. What is stored by then stays."""
    place = Path(payload["path"])

    def told(count: int) -> None:
        if not progress(count, f"{count} rollouts stored"):
            raise InterruptedError

    unit = Unit(payload["name"], {payload["name"]: InputFile.of_path(place)})
    try:
        results = [asdict(result) for result in import_units(expand(unit), project=payload["project"], progress=told)]
    except InterruptedError:
        return {"results": [], "cancelled": True}
    return {"results": results}


def discard_upload(payload: dict[str, Any]) -> None:
    """Remove an upload's spooled file once its job has ended; another attempt would need it until then."""
    shutil.rmtree(Path(payload["path"]).parent, ignore_errors=True)
