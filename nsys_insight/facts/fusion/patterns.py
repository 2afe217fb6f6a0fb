"""What a kernel computes, by its name, and the chains that are known to be one operation in pieces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from nsys_insight.paths import queries_folder

NOVEL = "novel: torch.compile may fuse it; otherwise write a kernel"


@dataclass(frozen=True)
class Pattern:
    """A chain that is known; see `queries/catalog/fusion_patterns.toml`."""

    name: str
    sequence: re.Pattern[str]
    around: frozenset[str]
    library: bool
    complexity: str
    remedy: str


@dataclass(frozen=True)
class Catalog:
    """The patterns, and the regular expressions that tell what a kernel computes."""

    operations: tuple[tuple[str, re.Pattern[str]], ...]
    patterns: tuple[Pattern, ...]

    def operation(self, name: str, family: str) -> str:
        """What the kernel of this name computes, or else its family; one word."""
        if family not in ("gemm", "attention", "comm"):
            for word, expression in self.operations:
                if expression.search(name):
                    return word
        return family.partition("/")[0]


@cache
def catalog() -> Catalog:
    """Read the catalog."""
    import tomllib

    facts = tomllib.loads((queries_folder() / "catalog" / "fusion_patterns.toml").read_text(encoding="utf-8"))
    return Catalog(
        tuple((word, re.compile(expression)) for word, expression in facts["operations"].items()),
        tuple(
            Pattern(
                entry["name"],
                over_words(entry["sequence"]),
                frozenset(entry.get("around", ())),
                entry.get("library", False),
                entry["complexity"],
                entry["remedy"],
            )
            for entry in facts["patterns"]
        ),
    )


def over_words(sequence: str) -> re.Pattern[str]:
    """Compile a regular expression over words into one over texts in which every word is followed by a space."""
    parts = re.findall(r"[a-z_]+|[^\sa-z_]+", sequence)
    return re.compile("(?<![a-z_])(?:" + "".join(f"(?:{part} )" if part[0].isalpha() else part for part in parts) + ")")


def text_of(words: list[str]) -> str:
    """Write operations as the text in which patterns are looked for."""
    return "".join(f"{word} " for word in words)
