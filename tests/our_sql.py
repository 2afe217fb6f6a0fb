"""All SQL of the package, text by text, as it runs."""

from __future__ import annotations

import re
from itertools import product

from nsys_insight.diagnose.findings import finding_rules, over_answers, reports_of
from nsys_insight.model.producers import producers
from nsys_insight.model.views import definitions
from nsys_insight.packs.library import built_in
from nsys_insight.paths import queries_folder
from nsys_insight.sql.headers import branching, chosen, split


def texts():
    """Give each text of SQL in `queries/` with its name."""
    yield from ((f"view {view.name}", view.create) for view in definitions().values())
    yield from ((f"fact {fact.name}", fact.query) for fact in producers().values() if fact.is_statement)
    for pack in built_in().values():
        for name, sql in {"": pack.sql, **pack.notes}.items():
            yield from ((f"report {pack.name} {name}".strip(), text) for text in each_choice(sql, pack))
    for rule in finding_rules():
        for sql in filter(None, [rule.sql, rule.when]):
            yield from ((f"finding {rule.name}", text) for text in alone_and_over_answers(sql))
    for path in sorted(queries_folder().rglob("*.sql")):
        name, text = path.relative_to(queries_folder()).with_suffix("").as_posix(), path.read_text(encoding="utf-8")
        if re.match(r"(internal|facts/\w+)/", name) and not name.endswith("/tables"):
            yield from ((name, sql) for sql in alone_and_over_answers(text))
        if re.match(r"(ncu_rules|strategies)/", name):
            yield name, split(text)[1]


def each_choice(sql, pack):
    """Give a statement of a report as it is written, and what is left of it by its parameters."""
    yield sql
    names = sorted(branching(sql))
    for values in product(*(pack.params[name].choices for name in names)):
        yield chosen(sql, dict(zip(names, values, strict=True)))


def alone_and_over_answers(sql):
    """Give a query as it is written, and over stored answers of the reports that it names."""
    return sql, over_answers(sql, dict.fromkeys(reports_of(sql), "internal.answer_1"))
