"""Compiled templates, kept where Python keeps compiled modules: to compile them takes longer than to fill them in."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import BytecodeCache

if TYPE_CHECKING:
    from jinja2.bccache import Bucket


class Compiled(BytecodeCache):
    """The files in the `__pycache__` of a folder of templates; Jinja tells by a checksum whether one is out of date.

    As with modules, none is written where Python is not to write any, or may not.
    """

    def __init__(self, folder: Path) -> None:
        """Name the folder that the templates are in."""
        self._folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a template, if it is there."""
        with suppress(OSError, EOFError, pickle.UnpicklingError), self._file(bucket).open("rb") as stream:
            bucket.load_bytecode(stream)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a template; others who write it do not notice."""
        if sys.dont_write_bytecode:
            return
        file = self._file(bucket)
        made = file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                with made.open("wb") as stream:
                    bucket.write_bytecode(stream)
                made.replace(file)
            finally:
                made.unlink(missing_ok=True)

    def _file(self, bucket: Bucket) -> Path:
        return Path(cache_from_source(str(self._folder / f"{bucket.key}.j2")))
