"""Errors and their exit codes."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Exit(IntEnum):
    """Exit codes of every command. An empty answer is a success."""

    OK = 0
    FAILED = 1
    USAGE = 2
    TRACE = 3
    TOOL = 4
    INTERRUPTED = 130
    TERMINATED = 143


class InsightError(Exception):
    """An error with one sentence on what happened to which file, and a hint on what to type next."""

    exit_code = Exit.FAILED
    kind = "failed"

    def __init__(self, message: str, hint: str = "") -> None:
        """Store the sentence and the hint separately: the terminal prints them on two lines. Tracebacks show both."""
        super().__init__(message)
        if hint:
            self.add_note(f"hint: {hint}")
        self.message = message
        self.hint = hint


class QueryError(InsightError):
    """The SQL failed."""

    kind = "query"


class UnreadableRowError(QueryError):
    """A row stopped a query after other rows had been returned; run again, the query skips that row."""


class UsageError(InsightError):
    """The user requested something that does not exist or is ambiguous."""

    exit_code = Exit.USAGE
    kind = "usage"


class TraceError(InsightError):
    """The trace cannot be read, or lacks what the report needs."""

    exit_code = Exit.TRACE
    kind = "trace"


class ToolError(InsightError):
    """Nsys or ncu could not run, or failed."""

    exit_code = Exit.TOOL
    kind = "tool"


def file_changed_error(path: object, change: str = "replaced or written to") -> TraceError:
    """Return the error for a trace that changed after it was opened."""
    return TraceError(f"{path} was {change} while it was being read", "try again when nothing writes to it")


def cannot_write_error(path: object, error: OSError) -> UsageError:
    """Return the error for a file that cannot be written."""
    return UsageError(f"cannot write {path}: {describe_cause(error)}", "name a file in a folder that exists")


def describe_cause(error: Exception) -> str:
    """Return what happened: of an error of the system without its number and the name of the file."""
    return getattr(error, "strerror", None) or str(error)


def read_text(path: Path, hint: str, errors: str = "strict") -> str:
    """Read a file that the user named; `errors` says what becomes of bytes that are not UTF-8, as in `open`.

    Raises:
        UsageError: The file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors=errors)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint) from None
