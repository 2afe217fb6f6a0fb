"""Which traces the server may open: those it was started with, and all below the folders it was started with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.cli.trace_argument import candidates
from nsys_insight.errors import UsageError
from nsys_insight.ingest.identify import is_parquet_folder
from nsys_insight.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LISTED = 20


class Traces:
    """The traces that may be queried."""

    def __init__(self, given: Sequence[Path]) -> None:
        """Take the traces and folders that were named.

        Raises:
            UsageError: One does not exist.
        """
        self._files: list[Path] = []
        self._folders: list[Path] = []
        for path in map(expanded, given):
            if not path.exists():
                raise UsageError(f"{path} does not exist", "name traces, or folders with traces")
            is_folder = path.is_dir() and not is_parquet_folder(path)
            (self._folders if is_folder else self._files).append(path)

    def listed(self) -> list[str]:
        """Name the traces: those that were given, and those right in the folders."""
        return [
            str(path) for path in (*self._files, *(each for folder in self._folders for each in candidates(folder)))
        ]

    def find(self, asked: str | None) -> Path:
        """Return the trace that is meant: a path, or a name below one of the folders; None where there is one alone.

        Raises:
            UsageError: It is not there, or may not be asked.
        """
        if not asked:
            only = self.listed()
            if len(only) != 1:
                raise self._refusal("it is unclear which trace is meant")
            return Path(only[0])
        for path in self._meant(asked):
            # A name may be too long for a file system, which pathlib does not forgive.
            if os.path.exists(path) and self._is_allowed(path):  # noqa: PTH110
                return path
        raise self._refusal(f"there is no trace {asked!r} that may be queried")

    def _meant(self, asked: str) -> Iterator[Path]:
        yield from (path for path in self._files if asked in (path.name, str(path)))
        if "\0" not in asked:
            yield Path(asked)
            yield from (folder / asked for folder in self._folders)

    def _is_allowed(self, path: Path) -> bool:
        """Whether a path leads to a trace that was named, or below a folder that was; links are followed."""
        real = path.resolve()
        if any(real == file.resolve() for file in self._files):
            return True
        roots = [folder.resolve() for folder in self._folders]
        if not any(real.is_relative_to(root) for root in roots):
            return False
        if not real.is_dir():
            return True
        # The tables of a folder are files in it, and these may be links, too.
        inside = [Path(entry.path).resolve() for entry in os.scandir(real)]
        return is_parquet_folder(real) and all(any(one.is_relative_to(root) for root in roots) for one in inside)

    def _refusal(self, message: str) -> UsageError:
        known = self.listed()
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        return UsageError(message, f"traces: {', '.join(known[:_LISTED]) or 'none right in the folders'}{more}")
