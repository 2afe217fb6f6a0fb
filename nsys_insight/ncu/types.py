"""What is to be done before ncu profiles kernels of a kind: `queries/catalog/ncu_types.toml`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.paths import queries_folder

if TYPE_CHECKING:
    from collections.abc import Collection

# Implementations by where kernels come from, as `kernel_names` says it.
_OF_PROVENANCE = {
    "Triton": "triton", "Inductor": "inductor", "CUTLASS": "cutlass", "CuTe": "cute", "hand-written": "native",
}  # fmt: skip


def steps(provenances: Collection[str | None]) -> list[str]:
    """Say of the kinds among some kernels what to do first, and how ncu finds all kernels of the kind."""
    meant = {_OF_PROVENANCE.get(one or "") for one in provenances}
    return [
        f"{one['implementation']}: {'; '.join([*one['steps'], _all(one)])}"
        for one in _catalog()
        if one["implementation"] in meant
    ]


def _all(one: dict[str, Any]) -> str:
    return f"all of the kind: --kernel-name {one['wildcard']}"


@cache
def _catalog() -> list[dict[str, Any]]:
    import tomllib

    text = (queries_folder() / "catalog" / "ncu_types.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["types"]  # type: ignore[no-any-return]
