"""The layers of the package: a module imports from the layers below its own, never from above, and never in a circle.

Imports inside functions and for type checkers count as dependencies.
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
from nsys_insight.model.views import documented_views
from nsys_insight.packs.library import command_files
from nsys_insight.session.schema import describe_schema

PACKAGE = Path(nsys_insight.__file__).parent
QUERIES = PACKAGE.parent / "queries"
# From the bottom to the top. Parts in one line do not import each other.
LAYERS = """
    errors extras paths progress records version
    own_files programs
    cache_folder
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
LAYER_BY_PART = {part: layer for layer, line in enumerate(LAYERS.strip().splitlines()) for part in line.split()}


def list_modules():
    """Yield the dotted name and the path of every module."""
    for path in PACKAGE.rglob("*.py"):
        names = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(names[:-1] if names[-1] == "__init__" else names), path


MODULES = dict(list_modules())


def list_imports(name, text):
    """Return the modules of this package that a source text imports, at any place."""
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} imports by dots"
            candidates = {f"{node.module}.{alias.name}" for alias in node.names}
            # `from package import module` needs the module; `from module import name` needs the module before the name.
            imported |= {module if module in MODULES else node.module for module in candidates}
    return {module for module in imported if module in MODULES and module != name}


@cache
def imports_by_module():
    """Return the imports of each module."""
    return {name: list_imports(name, path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def package_part(module):
    return module.split(".")[1] if "." in module else "(package)"


def list_upward_imports(graph):
    """Return the imports that lead neither to a layer below nor to the same part."""
    return [
        f"{name} imports {imported}"
        for name, imported_modules in graph.items()
        for imported in imported_modules
        if package_part(imported) != package_part(name)
        and LAYER_BY_PART[package_part(imported)] >= LAYER_BY_PART[package_part(name)]
    ]


def test_imports_lead_down():
    assert list_upward_imports(imports_by_module()) == []


def test_there_is_no_circular_import():
    TopologicalSorter(imports_by_module()).prepare()  # raises CycleError, and names the circle


def test_an_import_from_above_is_detected():
    lazy_import = "def f():\n    from nsys_insight.cli import flags\n"
    type_checking_import = "if TYPE_CHECKING:\n    import nsys_insight.render\n"
    for text in (lazy_import, type_checking_import):
        assert list_upward_imports({"nsys_insight.sql.names": list_imports("nsys_insight.sql.names", text)})


def test_every_part_has_a_layer():
    assert {package_part(name) for name in MODULES} == LAYER_BY_PART.keys()


@pytest.mark.parametrize("folder", [folder.name for folder in QUERIES.iterdir() if folder.is_dir()])
def test_no_query_is_ordered_by_digits_in_its_name(folder):
    # Findings and rules are called what answers call them: d2h-sync, l2-misses.
    digit = r"^\d" if folder in ("findings", "ncu_rules", "catalog") else r"\d"
    assert not [path for path in (QUERIES / folder).rglob("*") if re.search(digit, path.name)]


def test_help_entries_match_the_declarations_of_commands():
    assert commands.read_help_entries().keys() == command_files().keys()
    for name, entry in commands.read_help_entries().items():
        command = commands.load_command(name)
        assert command is not None
        assert {**vars(command), **vars(entry)} == vars(command)


def test_internal_views_are_described_only_on_request():
    public_views, all_views = (
        {row["view"] for row in describe_schema(internal=internal).dicts()} for internal in (False, True)
    )
    assert all_views == set(documented_views())
    assert all_views - public_views == {name for name in all_views if name.startswith("_")} != set()
