"""Refusals of a folder's files: many for one reason are one, since a session may be kept in hundreds of files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from harnesslab.actions.imports.importing import REFUSED, ImportResult


def together(results: Iterable[ImportResult]) -> Iterator[ImportResult]:
    """Yield results in order; refusals in a row that lie in one folder and have one reason come as one of the folder.

    A folder in which anything else was imported keeps a refusal for each file.
    """
    taken: set[str] = set()
    waiting: list[ImportResult] = []
    for result in results:
        if result.status == REFUSED and result.within:
            waiting.append(result)
            continue
        taken.add(result.within)
        yield from _joined(waiting, taken)
        waiting = []
        yield result
    yield from _joined(waiting, taken)


def _joined(refused: list[ImportResult], taken: set[str]) -> Iterator[ImportResult]:
    groups: dict[tuple[str, str], list[ImportResult]] = defaultdict(list)
    for result in refused:
        groups[result.within, _reason(result)].append(result)
    for (folder, reason), results in groups.items():
        if len(results) < 2 or folder in taken:
            yield from results
            continue
        names = f"{results[0].file} to {results[-1].file}"
        yield replace(results[0], file=f"{folder}/", reason=f"{folder}: {len(results)} files ({names}): {reason}")


def _reason(result: ImportResult) -> str:
    """Return a refusal without the file's name, and without the keys of what is not known."""
    reason = result.reason.removeprefix(f"{result.file}: ")
    known, unknown, _ = reason.partition("no known trace format: ")
    return f"{known}no known trace format" if unknown else reason
