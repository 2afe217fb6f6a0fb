"""What a tuned kernel reaches, and what each kernel does: `queries/catalog/ncu_targets.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.paths import queries_folder
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from nsys_insight.ncu.measured import Measured


@dataclass(frozen=True)
class Target:
    """A target of a kernel: what it reaches, what it should, both in %, and whether it does."""

    target: str
    value_pct: float
    target_pct: float

    @property
    def is_met(self) -> bool:
        """Whether it is reached."""
        return self.value_pct >= self.target_pct


def targets_of(measured: Measured) -> dict[int, list[Target]]:
    """The targets of each launch, those that were measured and are targets of such a kernel."""
    parts = [
        f"SELECT launch, {number} AS number, {literal(one['target'])} AS target,"
        f" ({one['value']})::DOUBLE AS value_pct, {one['above']}::DOUBLE AS target_pct"
        f" FROM ncu_kernels WHERE ({one['value']}) IS NOT NULL AND {one['only']}"
        for number, one in enumerate(_catalog())
    ]
    found: dict[int, list[Target]] = {}
    for row in measured.rows(" UNION ALL ".join(parts) + " ORDER BY launch, number"):
        found.setdefault(row["launch"], []).append(Target(row["target"], row["value_pct"], row["target_pct"]))
    return found


@cache
def _catalog() -> list[dict[str, Any]]:
    import tomllib

    text = (queries_folder() / "catalog" / "ncu_targets.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["targets"]  # type: ignore[no-any-return]
