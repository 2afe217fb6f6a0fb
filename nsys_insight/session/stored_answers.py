"""Storing a report's answer as a table, with the sentences of its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.errors import QueryError
from nsys_insight.ingest.several import catalogs, inside
from nsys_insight.session.answer import all_readable, store
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from nsys_insight.session.answer import Columns
    from nsys_insight.session.prefetch import Question

Table = tuple[str, "Columns"]  # a result's name, and its columns
Found = tuple[Table, list[list[str]]]  # an answer, and the sentences of each of its notes
Rows = tuple[list[str], "list[tuple[Any, ...]]"]  # a result's columns, and its rows


def store_answer(connection: DuckDBPyConnection, name: str, asked: Question) -> Found:
    """Store the answer to a question in a new table `name`, and return it with its notes.

    Raises:
        QueryError: A note cannot be bound.
    """
    columns = store(connection, name, asked.query)
    return (name, columns), [[text for text in _sentences(connection, note, name) if text] for note in asked.notes]


def store_answer_of_each(
    connection: DuckDBPyConnection, name: str, asked: Question, labels: Sequence[str], ranks: Mapping[str, int]
) -> Found:
    """Answer a question for each trace by itself, and store the rows of all in a new table `name`.

    Rows are ordered by their position: the first ones of all traces, then the second ones. A sentence that holds for
    all traces is noted once. The columns `trace` and, if any rank is known, `rank` come first.

    Args:
        connection: The traces are its catalogs `several.catalogs(len(labels))`.
        name: The table, with its catalog and schema.
        asked: The question.
        labels: The names of the traces.
        ranks: The ranks by label, where known.

    Raises:
        QueryError: A note cannot be bound.
    """
    columns: Columns = []
    said: list[dict[str, list[str]]] = [{} for _ in asked.notes]
    for number, (catalog, label) in enumerate(zip(catalogs(len(labels)), labels, strict=True)):
        with inside(connection, catalog):
            columns = store(connection, f"{name}_{number}", asked.query)
            for sentences, note in zip(said, asked.notes, strict=True):
                for sentence in _sentences(connection, note, f"{name}_{number}"):
                    sentences.setdefault(sentence, []).append(label)
    pieces = " UNION ALL BY NAME ".join(
        f"SELECT {number} AS piece_, {literal(label)} AS trace"
        f"{f', {literal(ranks.get(label))}::BIGINT AS rank' if ranks else ''}, * FROM {name}_{number}"
        for number, label in enumerate(labels)
    )
    connection.execute(
        f"CREATE TABLE {name} AS SELECT * EXCLUDE (piece_)"
        f" REPLACE (row_number() OVER (ORDER BY row_, piece_) AS row_) FROM ({pieces})"
    )
    for number in range(len(labels)):
        connection.execute(f"DROP TABLE {name}_{number}")
    first = {"trace": "VARCHAR"} | ({"rank": "BIGINT"} if ranks else {})
    return (name, [*first.items(), *columns]), [_name_traces(sentences, labels) for sentences in said]


def read_rows(connection: DuckDBPyConnection, query: str) -> Rows:
    """Run a query, and return its columns and rows; types that Python cannot read become text."""
    # Within a SELECT it can be nothing but a query.
    answer = connection.execute(f"SELECT * FROM (\n{query}\n)")
    columns = [(name, str(kind)) for name, kind, *_ in answer.description]
    if (readable := all_readable(columns)) != "*":
        answer = connection.execute(f"SELECT {readable} FROM (\n{query}\n)")
    return [name for name, _ in columns], answer.fetchall()


def _sentences(connection: DuckDBPyConnection, note: str, answer: str) -> list[str]:
    import duckdb

    try:
        rows = connection.execute(f"WITH answer AS (FROM {answer}) SELECT * FROM ({note})").fetchall()
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
        what = str(error).partition("\n")[0]
        raise QueryError(f"a note of the report failed: {what}", "nsys-insight packs check FILE") from None
    return [text for (text,) in rows]


def _name_traces(said: dict[str, list[str]], labels: Sequence[str]) -> list[str]:
    """Put the traces in front of each sentence that does not hold for all."""
    return [text if traces == labels else f"{', '.join(traces)}: {text}" for text, traces in said.items() if text]
