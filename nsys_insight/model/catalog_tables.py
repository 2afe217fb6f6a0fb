"""Catalog tables as DuckDB table macros: the properties of compute capabilities, and rules of thumb."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from nsys_insight.paths import queries_folder
from nsys_insight.sql.quoting import literal

LIMITS = ("warps_per_sm", "blocks_per_sm", "registers_per_sm", "shared_per_sm_bytes", "shared_per_block_optin_bytes")
COSTS = ("least_ns", "likely_ns", "most_ns")


def write_table_macros() -> list[str]:
    """Write the SQL that creates the table macros of the catalogs.

    compute_capabilities(): one row per compute capability, with the limits of its SMs. peak_rates(): one row per
    compute capability and precision, with the operations of one SM per cycle. gpu_products(): the product of each
    compute capability whose data sheet the rates are from, with its SMs and maximum clock. nvlinks(): the bandwidth of
    a product's NVLinks in one direction. rules_of_thumb(): the usual bound of the kernels of a family, or of those with
    a matching name; the first match counts (`queries/catalog/kernel_bounds.toml`). metric_columns(metrics): one row per
    launch of a table like `raw.ncu_metrics`, with the columns of `queries/catalog/ncu_metrics.toml`. profiler_costs():
    one row per framework and kind of call, with what a call takes without nsys (`queries/catalog/profiler_costs.toml`).
    """
    return [
        _write_metric_columns(),
        _write_table_macro(
            "compute_capabilities",
            ("compute_capability", *LIMITS, "shared_unit_bytes", "shared_driver_bytes", "host_link_bytes_per_s"),
            [
                (
                    chip["compute_capability"],
                    *(chip["limits"][name] for name in LIMITS),
                    chip["shared_unit_bytes"],
                    chip["shared_driver_bytes"],
                    chip.get("host_link_bytes_per_s"),
                )
                for chip in read_chips()
            ],
        ),
        _write_table_macro(
            "peak_rates",
            ("compute_capability", "precision", "flops_per_cycle"),
            [
                (chip["compute_capability"], precision, rate)
                for chip in read_chips()
                for precision, rate in chip["flops_per_cycle"].items()
            ],
        ),
        _write_table_macro(
            "gpu_products",
            ("name", "compute_capability", "sm_count", "clock_hz"),
            [
                (name, chip["compute_capability"], sms, clock)
                for chip in read_chips()
                for name, sms, clock in _product(chip)
            ],
        ),
        _write_table_macro(
            "nvlinks",
            ("pattern", "nvlink_bytes_per_s"),
            [(link["pattern"], link["nvlink_bytes_per_s"]) for link in _read("links.toml", "links")],
        ),
        _write_table_macro(
            "rules_of_thumb",
            ("number", "family", "pattern", "bound", "min_duration_ns", "because"),
            [
                (
                    number,
                    rule["family"],
                    rule.get("pattern", ""),
                    rule["bound"],
                    rule.get("min_duration_ns", 0),
                    rule["because"],
                )
                for number, rule in enumerate(_read("kernel_bounds.toml", "rules"))
            ],
        ),
        _write_table_macro(
            "profiler_costs",
            ("framework", "call_group", *COSTS, *_read("profiler_costs.toml", "shares")),
            [
                (
                    framework,
                    cost["call_group"],
                    *(cost[name] for name in COSTS),
                    *_read("profiler_costs.toml", "shares").values(),
                )
                for cost in _read("profiler_costs.toml", "calls")
                for framework in cost["frameworks"]
            ],
        ),
    ]


def read_chips() -> list[dict[str, Any]]:
    """Read the compute capabilities of `queries/catalog/compute_capabilities.toml`, the oldest first."""
    return _read("compute_capabilities.toml", "compute_capabilities")  # type: ignore[no-any-return]


def _product(chip: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Return the name, SMs and clock of a product, from a text such as "T4: 40 SMs, 1.59 GHz, 8.1 fp32 TFLOPS"."""
    match = re.match(r"(.+?): (\d+) SMs, ([\d.]+) GHz", chip["product"])
    return [(match[1], int(match[2]), round(float(match[3]) * 1e9))] if match else []


def name_metrics(text: str) -> str:
    """Write the metrics of ncu for each ``{column}`` in the description of a column."""
    return re.sub(r"\{(\w+)\}", lambda match: " or ".join(f"`{metric}`" for metric in _metrics()[match[1]]), text)


def _write_metric_columns() -> str:
    texts = _read("ncu_metrics.toml", "texts")
    columns = ",\n".join(
        f"coalesce({', '.join(f'max({kind}) FILTER (metric = {literal(metric)})' for metric in metrics)}) AS {column}"
        for column, metrics in _metrics().items()
        for kind in ("text" if column in texts else "value",)
    )
    return (
        f"CREATE OR REPLACE MACRO metric_columns(metrics) AS TABLE\n"
        f"SELECT launch, {columns} FROM query_table(metrics) GROUP BY launch"
    )


def _metrics() -> dict[str, list[str]]:
    """Return the metrics of each column of `queries/catalog/ncu_metrics.toml`; the first one collected counts."""
    return _read("ncu_metrics.toml", "columns") | _read("ncu_metrics.toml", "texts")  # type: ignore[no-any-return]


@cache
def _read(file: str, key: str) -> Any:
    import tomllib

    return tomllib.loads((queries_folder() / "catalog" / file).read_text(encoding="utf-8"))[key]


def _write_table_macro(name: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """Write a table macro without parameters. Its columns have the types of the literals in DuckDB."""
    values = ",\n".join(f"({', '.join(map(literal, row))})" for row in rows)
    return f"CREATE OR REPLACE MACRO {name}() AS TABLE SELECT * FROM (VALUES\n{values}\n) AS t({', '.join(columns)})"
