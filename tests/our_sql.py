"""All SQL of the package, as it runs."""

from __future__ import annotations

import re
from itertools import product

from nsys_insight.diagnose.findings import bind_reports, list_reports, read_finding_rules
from nsys_insight.model.producers import all_producers
from nsys_insight.model.views import definitions
from nsys_insight.packs.library import built_in_packs
from nsys_insight.paths import package_folder, queries_folder
from nsys_insight.sql.headers import drop_branches, find_branch_parameters, split_header


def list_files():
    """List the SQL files: those in `queries/`, and the statements of facts that need Python."""
    return sorted([*queries_folder().rglob("*.sql"), *(package_folder() / "facts").rglob("*.sql")])


def list_statements():
    """Yield the name and the text of each SQL statement."""
    yield from ((f"view {view.name}", view.create) for view in definitions().values())
    for fact in all_producers().values():
        yield from ((f"fact {fact.name}", text) for sql in fact.statements for text in bind_to_answers(sql))
    for pack in built_in_packs().values():
        for name, sql in {"": pack.sql, **{name: note.query for name, note in pack.notes.items()}}.items():
            yield from ((f"report {pack.name} {name}".strip(), text) for text in choose_branches(sql, pack))
    for rule in read_finding_rules():
        for sql in filter(None, [rule.sql, rule.when]):
            yield from ((f"finding {rule.name}", text) for text in bind_to_answers(sql))
    for path in sorted(queries_folder().rglob("*.sql")):
        name, text = path.relative_to(queries_folder()).with_suffix("").as_posix(), path.read_text(encoding="utf-8")
        if name.startswith("internal/"):
            yield from ((name, sql) for sql in bind_to_answers(text))
        if re.match(r"(ncu_rules|strategies)/", name):
            yield name, split_header(text)[1]


def choose_branches(sql, pack):
    """Yield a statement of a report unchanged, and its branches for each choice of its parameters."""
    yield sql
    names = sorted(find_branch_parameters(sql))
    for values in product(*(pack.params[name].choices for name in names)):
        yield drop_branches(sql, dict(zip(names, values, strict=True)))


def bind_to_answers(sql):
    """Return a query unchanged, and the query over stored answers of the reports that it names."""
    return sql, bind_reports(sql, dict.fromkeys(list_reports(sql), "internal.answer_1"))
