"""The catalogs that are tables, as DuckDB table macros: what each compute capability has, and rules of thumb."""

from __future__ import annotations

from functools import cache
from typing import Any

from nsys_insight.paths import queries_folder
from nsys_insight.sql.quoting import literal

LIMITS = ("warps_per_sm", "blocks_per_sm", "registers_per_sm", "shared_per_sm_bytes", "shared_per_block_optin_bytes")


def table_macros() -> list[str]:
    """Write the SQL that creates the table macros of the catalogs.

    compute_capabilities(): one row each, with the limits of its SMs. peak_rates(): one row per compute capability and
    precision, with the operations of one SM in one cycle. nvlinks(): what the NVLinks of a product carry in one
    direction. rules_of_thumb(): what usually bounds the kernels of a family, or those of it whose names match; the
    first that fits counts (`queries/catalog/kernel_bounds.toml`).
    """
    return [
        _table_macro(
            "compute_capabilities",
            ("compute_capability", *LIMITS, "shared_unit_bytes", "shared_driver_bytes"),
            [
                (
                    chip["compute_capability"],
                    *(chip["limits"][name] for name in LIMITS),
                    chip["shared_unit_bytes"],
                    chip["shared_driver_bytes"],
                )
                for chip in chips()
            ],
        ),
        _table_macro(
            "peak_rates",
            ("compute_capability", "precision", "flops_per_cycle"),
            [
                (chip["compute_capability"], precision, rate)
                for chip in chips()
                for precision, rate in chip["flops_per_cycle"].items()
            ],
        ),
        _table_macro(
            "nvlinks",
            ("pattern", "nvlink_bytes_per_s"),
            [(link["pattern"], link["nvlink_bytes_per_s"]) for link in _read("links.toml", "links")],
        ),
        _table_macro(
            "rules_of_thumb",
            ("number", "family", "pattern", "bound", "least_ns", "because"),
            [
                (
                    number,
                    rule["family"],
                    rule.get("pattern", ""),
                    rule["bound"],
                    rule.get("least_ns", 0),
                    rule["because"],
                )
                for number, rule in enumerate(_read("kernel_bounds.toml", "rules"))
            ],
        ),
    ]


def chips() -> list[dict[str, Any]]:
    """The compute capabilities of `queries/catalog/compute_capabilities.toml`, the oldest first."""
    return _read("compute_capabilities.toml", "compute_capabilities")


@cache
def _read(file: str, key: str) -> list[dict[str, Any]]:
    import tomllib

    return tomllib.loads((queries_folder() / "catalog" / file).read_text(encoding="utf-8"))[key]  # type: ignore[no-any-return]


def _table_macro(name: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """Write a table macro without parameters: its columns have the types that DuckDB gives to the literals."""
    values = ",\n".join(f"({', '.join(map(literal, row))})" for row in rows)
    return f"CREATE OR REPLACE MACRO {name}() AS TABLE SELECT * FROM (VALUES\n{values}\n) AS t({', '.join(columns)})"
