"""Store the answer of a report as a table, with the sentences of its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.errors import QueryError
from nsys_insight.ingest.catalogs import name_catalogs, use_catalog
from nsys_insight.session.answer import Columns, select_readable, store_result
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from nsys_insight.packs.notes import Note
    from nsys_insight.session.prefetch import Question

Table = tuple[str, "Columns"]  # the name and columns of a result
StoredAnswer = tuple[Table, list[list[str]]]  # an answer, and the sentences of each of its notes
Rows = tuple[list[str], "list[tuple[Any, ...]]"]  # the column names and rows of a result


def store_answer(connection: DuckDBPyConnection, name: str, question: Question) -> StoredAnswer:
    """Store the answer to a question in a new table `name`, and return it with its notes.

    Raises:
        QueryError: A note cannot be bound, or its text names a column that its query does not have.
    """
    columns = store_result(connection, name, question.query)
    return (name, columns), [_read_sentences(connection, note, name) for note in question.notes]


def store_answer_per_trace(
    connection: DuckDBPyConnection, name: str, question: Question, labels: Sequence[str], ranks: Mapping[str, int]
) -> StoredAnswer:
    """Answer a question for each trace separately, and store the rows of all traces in a new table `name`.

    Rows are ordered by their position: first the first rows of all traces, then the second rows. A sentence that
    applies to all traces is noted once. The columns `trace` and, if any rank is known, `rank` come first.

    Args:
        connection: The traces are its catalogs `several.catalogs(len(labels))`.
        name: The table, with its catalog and schema.
        question: The question.
        labels: The names of the traces.
        ranks: The ranks by label, where known.

    Raises:
        QueryError: A note cannot be bound, or its text names a column that its query does not have.
    """
    columns: Columns = []
    sentences_by_note: list[dict[str, list[str]]] = [{} for _ in question.notes]
    for number, (catalog, label) in enumerate(zip(name_catalogs(len(labels)), labels, strict=True)):
        with use_catalog(connection, catalog):
            columns = store_result(connection, f"{name}_{number}", question.query)
            for sentences, note in zip(sentences_by_note, question.notes, strict=True):
                for sentence in _read_sentences(connection, note, f"{name}_{number}"):
                    sentences.setdefault(sentence, []).append(label)
    union = " UNION ALL BY NAME ".join(
        f"SELECT {number} AS piece_, {literal(label)} AS trace"
        f"{f', {literal(ranks.get(label))}::BIGINT AS rank' if ranks else ''}, * FROM {name}_{number}"
        for number, label in enumerate(labels)
    )
    connection.execute(
        f"CREATE TABLE {name} AS SELECT * EXCLUDE (piece_)"
        f" REPLACE (row_number() OVER (ORDER BY row_, piece_) AS row_) FROM ({union})"
    )
    for number in range(len(labels)):
        connection.execute(f"DROP TABLE {name}_{number}")
    first = {"trace": "VARCHAR"} | ({"rank": "BIGINT"} if ranks else {})
    return (name, [*first.items(), *columns]), [_prefix_traces(sentences, labels) for sentences in sentences_by_note]


def read_rows(connection: DuckDBPyConnection, query: str) -> Rows:
    """Run a query, and return its columns and rows; values of types that Python cannot read become text."""
    # Inside of a SELECT, only a query is valid.
    answer = connection.execute(f"SELECT * FROM (\n{query}\n)")
    columns = [(name, str(kind)) for name, kind, *_ in answer.description]
    if (readable := select_readable(columns)) != "*":
        answer = connection.execute(f"SELECT {readable} FROM (\n{query}\n)")
    return [name for name, _ in columns], answer.fetchall()


def _read_sentences(connection: DuckDBPyConnection, note: Note, answer: str) -> list[str]:
    import duckdb

    try:
        result = connection.execute(f"WITH answer AS (FROM {answer}) SELECT * FROM (\n{note.query}\n)")
        columns = [name for name, *_ in result.description]
        rows = [dict(zip(columns, cells, strict=True)) for cells in result.fetchall()]
        return [text for row in rows if (text := note.fill(row))]
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
        reason = str(error).partition("\n")[0]
    except KeyError as error:
        reason = f"its query has no column {error}"
    raise QueryError(f"a note of the report failed: {reason}", "nsys-insight packs check FILE")


def _prefix_traces(labels_by_sentence: dict[str, list[str]], labels: Sequence[str]) -> list[str]:
    """Prefix each sentence that does not apply to all traces with the labels of its traces."""
    return [text if traces == labels else f"{', '.join(traces)}: {text}" for text, traces in labels_by_sentence.items()]
