"""The report for a coding agent: the diagnosis, the figures behind it and what to type next, in few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight import diagnosis_text
from nsys_insight.kernel_text import fit
from nsys_insight.render.cells import printable
from nsys_insight.render.human import fields_of
from nsys_insight.render.markdown import code, prose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.render.human import Field
    from nsys_insight.report.content import Content, Entry

# The tables that decide what to do, with their rows and columns; the others are a command away.
_TABLES = (
    ("per-token", 40, ("metric", "per_token", "wall_pct")),
    ("idle", 8, ("gpu_id", "cause", "host", "time_ns", "wall_pct")),
    ("host", 5, ("bottleneck", "count", "host_ns", "recoverable_ns", "wall_pct", "see")),
    ("top", 8, ("name", "calls", "total_ns", "avg_ns", "kernel_time_pct", "family")),
    ("syncs", 4, ("kind", "nvtx_path", "name", "calls", "gpu_idle_ns", "gpu_idle_wall_pct")),
    ("copies", 4, ("kind", "source_memory", "target_memory", "name", "calls", "total_ns", "size_bytes")),
    ("mallocs", 4, ("name", "memory", "calls", "steady_count", "total_ns", "wall_pct")),
    ("fusion", 5, ("candidate", "pattern", "verdict", "chosen", "saved_low_ns", "saved_high_ns", "per_step", "chain")),
    ("graph-candidates", 1, ("verdict", "saving_low_ns", "saving_high_ns", "reason")),
    ("headroom", 4, ("name", "grid", "bound", "recoverable_ns", "match")),
)
_NAME = 60  # characters of a name


def text(content: Content) -> str:
    """Write at most about four thousand tokens."""
    return "\n".join(_lines(content)).rstrip() + "\n"


def _lines(content: Content) -> Iterator[str]:
    yield f"# {prose(printable(content.file))}: what nsys-insight says"
    yield ""
    yield from (f"- {prose(printable(fact)[:200])}" for fact in content.facts)
    yield ""
    yield diagnosis_text.markdown(content.diagnosis)
    for name, limit, columns in _TABLES:
        entry = content.entries[name]
        if not entry.is_empty:
            yield from _table(entry, limit, columns, content.command(name))


def _table(entry: Entry, limit: int, columns: tuple[str, ...], command: str) -> Iterator[str]:
    answer = entry.answer
    fields = dict(
        zip((column.name for column in answer.columns), fields_of(answer, limit, full_names=False), strict=True)
    )
    shown = [fields[name] for name in columns]
    kept = [at for at in range(len(shown[0].cells)) if not _says_nothing(entry, shown, at)]
    yield f"## {entry.pack.title}"
    yield ""
    yield "|".join(" ".join(field.heading) for field in shown)
    yield "|".join("---" for _ in shown)
    for at in kept:
        yield "|".join(_cell(field, at) for field in shown)
    yield ""
    more = answer.row_count - len(kept) if entry.pack.name != "per-token" else 0
    yield f"{f'{more:,} more: ' if more > 0 else 'More: '}{code(printable(command))}"
    yield from (f"- {prose(printable(note)[:240])}" for note in answer.notes[:2])
    yield ""


def _says_nothing(entry: Entry, fields: list[Field], at: int) -> bool:
    """Whether a row of the budget is a zero."""
    return entry.pack.name == "per-token" and fields[1].cells[at] in ("0", "0 ns", "0 B", "-")


def _cell(field: Field, at: int) -> str:
    text = field.cells[at]
    return code(fit(text, _NAME)) if field.kind == "name" else prose(text[:120])
