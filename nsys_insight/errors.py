"""What can go wrong, and the exit code that says so."""

from __future__ import annotations

from enum import IntEnum


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
    """One sentence of what happened to which file, and a hint of what to type next."""

    exit_code = Exit.FAILED
    kind = "failed"

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep the sentence and the hint apart, for the terminal sets them on two lines; tracebacks show both."""
        super().__init__(message)
        if hint:
            self.add_note(f"hint: {hint}")
        self.message = message
        self.hint = hint


class QueryError(InsightError):
    """The SQL failed."""

    kind = "query"


class MetLateError(QueryError):
    """A row stopped a query when others had been handed over; asked again, it answers without that row."""


class UsageError(InsightError):
    """The command line asked for something that does not exist, or is ambiguous."""

    exit_code = Exit.USAGE
    kind = "usage"


class TraceError(InsightError):
    """The trace cannot be read, or lacks what the report needs."""

    exit_code = Exit.TRACE
    kind = "trace"


class ToolError(InsightError):
    """Running nsys or ncu was not possible, or failed."""

    exit_code = Exit.TOOL
    kind = "tool"


def file_changed(path: object, what: str = "replaced or written to") -> TraceError:
    """The error of a trace that did not stay as it was when it was opened."""
    return TraceError(f"{path} was {what} while it was being read", "try again when nothing writes to it")


def cannot_write(path: object, error: OSError) -> UsageError:
    """The error of a file that cannot be written."""
    return UsageError(f"cannot write {path}: {error.strerror or error}", "name a file in a folder that exists")
