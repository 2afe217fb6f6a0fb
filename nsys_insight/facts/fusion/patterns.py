"""What a kernel computes, by its name, and the known chains: one operation split over several kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from nsys_insight.paths import queries_folder

NOVEL = "unrecognized: torch.compile may fuse it; otherwise write a kernel"


@dataclass(frozen=True)
class Pattern:
    """A known chain; see `queries/catalog/fusion_patterns.toml`. `skipped` are operations of it that stay."""

    name: str
    sequence: re.Pattern[str]
    skipped: frozenset[str]
    is_library_operation: bool
    complexity: str
    remedy: str


@dataclass(frozen=True)
class Catalog:
    """The known chains, and the regular expressions that map kernel names to operations."""

    operations: tuple[tuple[str, re.Pattern[str]], ...]
    patterns: tuple[Pattern, ...]

    def find_operation(self, name: str, family: str) -> str:
        """Return what the kernel of this name computes, or else its family, as one word."""
        if family not in ("gemm", "attention", "comm"):
            for word, expression in self.operations:
                if expression.search(name):
                    return word
        return family.partition("/")[0]


@cache
def load_catalog() -> Catalog:
    """Read the catalog."""
    import tomllib

    text = (queries_folder() / "catalog" / "fusion_patterns.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    return Catalog(
        tuple((word, re.compile(expression)) for word, expression in entries["operations"].items()),
        tuple(
            Pattern(
                entry["name"],
                compile_sequence(entry["sequence"]),
                frozenset(entry.get("around", ())),
                entry.get("library", False),
                entry["complexity"],
                entry["remedy"],
            )
            for entry in entries["patterns"]
        ),
    )


def compile_sequence(sequence: str) -> re.Pattern[str]:
    """Compile a regular expression over words into an expression over texts in which a space follows every word."""
    tokens = re.findall(r"[a-z_]+|[^\sa-z_]+", sequence)
    expression = "".join(f"(?:{token} )" if token[0].isalpha() else token for token in tokens)
    return re.compile("(?<![a-z_])(?:" + expression + ")")


def join_words(words: list[str]) -> str:
    """Return operations as the text that patterns are matched against."""
    return "".join(f"{word} " for word in words)
