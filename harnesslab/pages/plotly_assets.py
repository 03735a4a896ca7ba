"""Serves the `plotly.min.js` that the installed plotly package ships, so that nothing of it is committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

NAME = "plotly.min.js"


class PlotlyFinder(BaseFinder):
    """Finds one static file in the plotly package, without importing it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        spec = find_spec("plotly")
        folders = list(spec.submodule_search_locations or []) if spec else []
        self._folder = Path(folders[0]) / "package_data" if folders else None

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        """Return the file's place for its name."""
        if path == NAME and self._folder is not None:
            place = str(self._folder / NAME)
            return [place] if find_all else place
        return []

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, FileSystemStorage]]:
        """Yield the file."""
        if self._folder is not None:
            yield NAME, FileSystemStorage(location=self._folder)
