"""The floors: a module imports from floors below its own, never from above, and never in a circle.

Imports inside functions and for type checkers count: what a module knows of is what it depends on.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import nsys_insight
from nsys_insight.cli import commands
from nsys_insight.model.views import documented
from nsys_insight.packs.library import command_files
from nsys_insight.session.schema import described

PACKAGE = Path(nsys_insight.__file__).parent
QUERIES = PACKAGE.parent / "queries"
# From the cellar up; those of one line stand side by side, and know nothing of each other.
FLOORS = """
    errors extras paths progress version
    outputs text
    sql
    ingest
    model
    packs
    facts
    session
    render
    diagnose compare convert fleet kernel_code ncu scrub
    bench
    experiment
    page
    notebook
    trace
    (package)
    cli
    __main__
"""
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS.strip().splitlines()) for part in parts.split()}


def modules():
    """Give every module by its dotted name."""
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def imported(name, text):
    """Give the modules of this package that a text imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} imports by dots"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            # `from package import module` needs the module; `from module import name` needs the module before the name.
            found |= {one if one in MODULES else node.module for one in whole}
    return {one for one in found if one in MODULES and one != name}


@cache
def imports():
    """Give what each module imports."""
    return {name: imported(name, path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def part(module):
    return module.split(".")[1] if "." in module else "(package)"


def upward(graph):
    """Give the imports that do not lead to a floor below, or stay in their own part."""
    return [
        f"{name} imports {other}"
        for name, others in graph.items()
        for other in others
        if part(other) != part(name) and FLOOR_OF[part(other)] >= FLOOR_OF[part(name)]
    ]


def test_imports_lead_down():
    assert upward(imports()) == []


def test_no_circle():
    TopologicalSorter(imports()).prepare()  # raises CycleError, and names the circle


def test_an_import_from_above_would_be_found():
    lazy = "def f():\n    from nsys_insight.cli import flags\n"
    typed = "if TYPE_CHECKING:\n    import nsys_insight.render\n"
    for text in (lazy, typed):
        assert upward({"nsys_insight.sql.names": imported("nsys_insight.sql.names", text)})


def test_every_part_has_its_floor():
    assert {part(name) for name in MODULES} == FLOOR_OF.keys()


@pytest.mark.parametrize("folder", [folder.name for folder in QUERIES.iterdir() if folder.is_dir()])
def test_no_query_is_ordered_by_digits_in_its_name(folder):
    # Findings and rules are called what answers call them: d2h-sync, l2-misses.
    digit = r"^\d" if folder in ("findings", "ncu_rules", "catalog") else r"\d"
    assert not [path for path in (QUERIES / folder).rglob("*") if re.search(digit, path.name)]


def test_what_is_read_of_a_command_is_what_its_module_declares():
    assert commands.help_entries().keys() == command_files().keys()
    for name, entry in commands.help_entries().items():
        command = commands.load_command(name)
        assert command is not None
        assert {**vars(command), **vars(entry)} == vars(command)


def test_views_that_others_are_made_of_are_described_only_to_who_asks_for_all():
    listed, every = ({row["view"] for row in described(internal=internal).dicts()} for internal in (False, True))
    assert every == set(documented())
    assert every - listed == {name for name in every if name.startswith("_")} != set()
