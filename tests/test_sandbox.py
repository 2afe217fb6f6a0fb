"""SQL can only read the trace: no files, network, extensions or settings, no changes, and no endless queries."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

import nsys_insight
from nsys_insight.errors import InsightError, QueryError
from nsys_insight.ingest import attach, database, expected_schema, extension, sqlite_file
from nsys_insight.packs.pack import parse_pack
from nsys_insight.session import pack_check, sandbox
from nsys_insight.sql.statements import Statement, split_statements

REPOSITORY = Path(__file__).parents[1]

# HERE is the folder with the trace, TRACE the trace, SECRET a file that must not be read.
HOSTILE = {
    "reading files": [
        "SELECT * FROM read_csv('SECRET')",
        "SELECT * FROM READ_TEXT/* */('SECRET')",
        'SELECT * FROM "read_blob" (\'SECRET\')',
        "SELECT * FROM system.main.read_text('SECRET')",
        "SELECT * FROM read_json_auto('SECRET')",
        "FROM 'SECRET'",
        'FROM "HERE/secret.csv"',
        "FROM 'HERE/*.csv'",
        "SELECT * FROM glob('HERE/*')",
        "SELECT * FROM sniff_csv('SECRET')",
        "SELECT * FROM parquet_scan('HERE/x.parquet')",
        "SELECT * FROM sqlite_scan('TRACE', 'StringIds')",
        "SELECT * FROM sqlite_scan('HERE/other.sqlite', 'people')",
        "SELECT * FROM sqlite_query('trace', 'SELECT 1')",
        "SELECT * FROM query('SELECT * FROM sqlite_scan(''HERE/other.sqlite'', ''people'')')",
        "SELECT * FROM query_table('SECRET')",
    ],
    # The model's own macros take names of tables.
    "names of tables": [
        "FROM cut_to('SECRET', 'wall')",
        "FROM cut_to('HERE/other.sqlite', 'wall')",
        "FROM in_scope('SECRET')",
        "FROM _idle_of('HERE/secret.csv')",
        "CREATE TEMP MACRO _idle_of(w) AS TABLE SELECT 1 AS x; FROM _idle_of(1)",
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM sqlite_scan(''TRACE'', ''StringIds'')'))",
        "SELECT json_serialize_plan('FROM sqlite_scan(''HERE/other.sqlite'', ''people'')')",
        "SELECT ('FROM sqlite_scan(''HERE/other.sqlite'', ''people'')').json_serialize_plan()",
        "CREATE TEMP MACRO p(q) AS json_serialize_plan(q); SELECT p('FROM sqlite_scan(''TRACE'', ''StringIds'')')",
        "FROM sqlite_attach('HERE/other.sqlite')",
        "FROM read_duckdb('HERE/x.duckdb', table_name := 't')",
        "FROM kernels, LATERAL (FROM read_text('SECRET'))",
        "CREATE TEMP MACRO peek(f) AS TABLE FROM read_text(f); FROM peek('SECRET')",
        "CREATE TEMP VIEW peek AS FROM read_text('SECRET'); FROM peek",
        "CREATE TEMP TABLE peek AS FROM read_text('SECRET'); FROM peek",
        "PREPARE peek AS FROM read_text('SECRET'); EXECUTE peek",
        "PIVOT read_csv('SECRET') ON x USING count(*)",
        "DESCRIBE FROM read_csv('SECRET')",
        "SUMMARIZE FROM read_csv('SECRET')",
        "IMPORT DATABASE 'HERE'",
    ],
    "writing files": [
        "COPY kernels TO 'HERE/out.csv'",
        "COPY (SELECT 1) TO 'TRACE' (FORMAT csv, USE_TMP_FILE false)",
        "EXPORT DATABASE 'HERE/out'",
        "ATTACH 'HERE/new.duckdb'",
        "ATTACH 'HERE/new.sqlite' (TYPE sqlite)",
        "ATTACH 'TRACE' AS again (TYPE sqlite)",
        "CALL enable_logging(storage = 'file', storage_path = 'HERE/logs')",
        "FROM enable_logging(storage = 'file', storage_path = 'HERE/logs')",
        "FROM enable_profiling(save_location = 'HERE/profile.json')",
        "PRAGMA enable_profiling = 'json'",
        "FROM sqlite_query('trace', 'VACUUM INTO ''HERE/copy.sqlite''')",
    ],
    "network, extensions and settings": [
        "FROM read_csv('https://example.com/x.csv')",
        "FROM 'https://example.com/x.parquet'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD 'HERE/x.duckdb_extension'",
        "CREATE SECRET (TYPE s3)",
        "CREATE PERSISTENT SECRET (TYPE http)",
        "FROM duckdb_secrets()",
        "SET memory_limit = '1TB'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA threads = 64",
        "SET VARIABLE x = 1",
        "UPDATE EXTENSIONS",
    ],
    "changing the trace": [
        "DELETE FROM trace.StringIds",
        "UPDATE trace.StringIds SET value = ''",
        "INSERT INTO trace.StringIds VALUES (1, 'x')",
        "DROP TABLE trace.StringIds",
        "CREATE TABLE trace.mine AS SELECT 1 AS x; SELECT 1",
        "ALTER TABLE trace.StringIds ADD COLUMN x INTEGER",
        "TRUNCATE trace.StringIds",
        "DROP VIEW kernels",
        "CREATE OR REPLACE VIEW kernels AS SELECT 1 AS x; FROM kernels",
    ],
    "functions and tables that views use": [
        "CREATE TEMP MACRO sum(x) AS 3; SELECT 1",
        "CREATE TEMP TABLE sum AS SELECT 1 AS x; CREATE TEMP MACRO sum(x) AS 3; SELECT 1",
        'CREATE FUNCTION "Regexp_Matches"(a, b) AS true; SELECT 1',
        "CREATE OR REPLACE TEMP MACRO duration(a, b) AS 7; SELECT 1",
        "CREATE OR REPLACE MACRO memory.main.duration(a, b) AS 7; SELECT 1",
        "CREATE TEMP TABLE facts.steps AS SELECT 1 AS step; FROM steps",
        "CREATE OR REPLACE TABLE scope AS SELECT 1 AS x; FROM kernels",
        "CREATE OR REPLACE VIEW raw.StringIds AS SELECT 1 AS id, 'x' AS value; FROM strings",
        "DETACH trace",
        "USE trace",
        "VACUUM",
        "CHECKPOINT trace",
        "FROM force_checkpoint('trace')",
        "BEGIN",
    ],
    "variables of Python": [
        "FROM secret_frame",
        "FROM python_map_function()",
    ],
}  # fmt: skip
ENDLESS = [
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count(*) FROM range(1000000000) AS a, range(1000000000) AS b",
    "SELECT a.range::VARCHAR || repeat('x', 1000) AS x FROM range(100000000) AS a",
    "SELECT sum(hash(a.range) + b.range) FROM range(100000000) AS a, range(100000000) AS b ORDER BY ALL",
    "SELECT pg_sleep(600)",
]
# All queries run on one trace and, with --all, on several. The other ways of opening run a sample: one query for each
# kind of barrier (statements, functions, files by name, settings, attached databases). One session runs all of a kind.
OPENINGS = ["in place", "several", "cached", "copied", "folder"]
HOSTILE_SAMPLE = [
    "SELECT * FROM read_csv('SECRET')",
    "FROM 'SECRET'",
    "SELECT * FROM sqlite_scan('HERE/other.sqlite', 'people')",
    "COPY kernels TO 'HERE/out.csv'",
    "SET enable_external_access = true",
    "CREATE TABLE trace.mine AS SELECT 1 AS x; SELECT 1",
]


def file_status(folder):
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def opened_trace(request, tmp_path_factory):
    """Yield a trace that is opened as the parameter says, and its folder."""
    folder = tmp_path_factory.mktemp("trace")
    export = Path(shutil.copy(REPOSITORY / "sample_traces" / "churn.sqlite", folder / "trace.sqlite"))
    (folder / "secret.csv").write_text("a\nhunter2\n")
    with contextlib.closing(sqlite3.connect(folder / "other.sqlite")) as database, database:
        database.execute("CREATE TABLE people AS SELECT 'hunter2' AS name")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.chdir(folder)
        if request.param == "copied":
            patch.setattr(extension, "find_scanner", lambda: None)
        path = write_parquet_folder(export, folder / "parquet") if request.param == "folder" else export
        paths = [path, folder / "other" / "trace.sqlite"] if request.param == "several" else path
        if request.param == "several":
            (folder / "other").mkdir()
            shutil.copy(export, folder / "other")
        with nsys_insight.open(paths, use_cache=request.param == "cached" or None, timeout_s=30) as opened_trace:
            yield opened_trace, folder
            assert opened_trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() % 500 == 0


def write_parquet_folder(trace, folder):
    """Write an export as the folder of Parquet files that nsys would write."""
    folder.mkdir()
    with nsys_insight.open(trace) as opened_trace:
        for table in expected_schema.read_expected_schema().keys() & sqlite_file.read_sqlite_columns(trace).keys():
            opened_trace.sql(f"FROM raw.{table}").write_parquet(folder / f"{table}.parquet")
    return folder


def run_statements(trace, text):
    for statement in split_statements(text):
        if statement.defined_name:
            trace.define(statement)
        else:
            trace.execute(statement).rows()


def list_accepted(opened_trace, queries):
    """Return the queries that are not refused with a hint, or that change a file."""
    trace, folder = opened_trace
    accepted, before = [], file_status(folder)
    for query in queries:
        text = query.replace("HERE", str(folder)).replace("TRACE", str(trace.path))
        try:
            run_statements(trace, text.replace("SECRET", str(folder / "secret.csv")))
            is_refused = False
        except InsightError as error:
            is_refused = error.exit_code == 1 and bool(error.hint)
        if not is_refused or file_status(folder) != before:
            accepted.append(query)
    # A changed trace has other kernels.
    assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() % 500 == 0
    return accepted


@pytest.mark.parametrize("opened_trace", OPENINGS[:1], indirect=True)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_query_is_refused_and_changes_nothing(opened_trace, kind):
    secret_frame = opened_trace[0].sql("SELECT 'hunter2' AS x")
    assert list_accepted(opened_trace, HOSTILE[kind]) == []
    assert secret_frame.height == 1


@pytest.mark.parametrize("opened_trace", OPENINGS[1:], indirect=True)
def test_hostile_queries_are_refused_however_the_trace_is_opened(opened_trace):
    assert list_accepted(opened_trace, HOSTILE_SAMPLE) == []


@pytest.mark.slow
@pytest.mark.parametrize("opened_trace", ["several"], indirect=True)
def test_hostile_queries_on_several_traces_are_refused(opened_trace):
    assert list_accepted(opened_trace, [query for queries in HOSTILE.values() for query in queries]) == []


@pytest.mark.parametrize("query", ENDLESS)
def test_an_endless_query_is_stopped_and_the_next_one_answers(query, sample, tmp_path, monkeypatch):
    (tmp_path / "spill").mkdir()  # the replaced function creates it
    monkeypatch.setattr(database, "spill_folder", lambda: str(tmp_path / "spill"))
    monkeypatch.setattr(sandbox, "MAX_SPILL", "20MB")
    with nsys_insight.open(sample("churn"), timeout_s=1, memory="100MB") as trace:
        started = time.perf_counter()
        with pytest.raises(QueryError, match=r"was stopped after 1 s|needs more memory|would spill more than 20MB"):
            trace.query(query)
        assert time.perf_counter() - started < 20
        assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500


def test_traces_open_at_the_same_time_spill_to_separate_folders(sample):
    """DuckDB numbers its files from 0 in each database: in one folder, two databases would overwrite each other."""
    with (
        nsys_insight.open(sample("churn")) as trace,
        trace.scope(stream=7) as scoped_trace,
        database.connect() as other,
    ):
        folders = {
            connection.execute("SELECT current_setting('temp_directory')").fetchone()
            for connection in (trace._connection.duckdb, scoped_trace._connection.duckdb, other)
        }
    assert len(folders) == 3


def test_ctrl_c_stops_a_query_and_the_next_one_answers(sample):
    with nsys_insight.open(sample("churn")) as trace:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            trace.query(ENDLESS[1])
        assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500


# Ctrl-C: tests/test_progress.py.
@pytest.mark.slow
def test_the_command_ends_on_sigterm(sample):
    command = [sys.executable, "-m", "nsys_insight", "sql", str(sample("churn")), ENDLESS[1]]
    process = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 143
    assert "Traceback" not in errors


# Functions that read files, open databases, change settings or run SQL in a text. `json_serialize_plan` looks up the
# tables of the query in its argument: it opens files.
REFUSED = set(
    """__internal_barrier __internal_compress_geometry_point __internal_compressed_materialization_cast
    __internal_decompress_geometry_point __internal_json_copy_to_geojson __internal_json_copy_to_json
    __internal_tablefilter_bloom_filter __internal_tablefilter_dynamic __internal_tablefilter_optional
    __internal_tablefilter_prefix_range __internal_tablefilter_selectivity_optional add_grammar_extension arrow_scan
    arrow_scan_dumb bitstring_byte_comparable checkpoint combine_aggr create_external_resource
    deregister_external_resource destroy_external_resource disable_logging disable_profiling
    duckdb_approx_database_count duckdb_available_metrics duckdb_connection_count duckdb_coordinate_systems
    duckdb_dialects duckdb_eviction_queues duckdb_extension_repositories duckdb_extensions
    duckdb_external_file_cache duckdb_external_resource_types duckdb_external_resources duckdb_grammar_extensions
    duckdb_live_query_metrics duckdb_log_contexts duckdb_logs duckdb_logs_parsed duckdb_prepared_statements
    duckdb_profiling_settings duckdb_secret_type_parameters duckdb_secret_types duckdb_secrets duckdb_table_sample
    duckdb_triggers enable_logging enable_profiling force_checkpoint glob hive_partition_component index_key
    json_copy_strftime_if_date json_copy_strftime_if_timestamp json_execute_serialized_sql json_serialize_plan
    map_type_id_to_pg_oid pandas_scan parquet_bloom_probe parquet_file_metadata parquet_full_metadata
    parquet_kv_metadata parquet_metadata parquet_page_index parquet_scan parquet_schema path_join
    pragma_metadata_info pragma_storage_info python_arrow_scan python_map_function query query_table read_blob
    read_csv read_csv_auto read_duckdb read_json read_json_auto read_json_objects read_json_objects_auto read_ndjson
    read_ndjson_auto read_ndjson_objects read_parquet read_single_csv_file read_single_json_file
    read_single_parquet_file read_text register_external_resource register_external_resource_type
    remove_grammar_extension seq_scan setval sniff_csv sqlite_attach sqlite_query sqlite_scan st_asgeojson
    st_geomfromgeojson to_aggregate_state truncate_duckdb_logs variant_comparator vertex_extract which_secret
    write_log""".split()  # noqa: SIM905 - easier to read than a list
)
REVIEWED = set((REPOSITORY / "queries/catalog/duckdb_functions.txt").read_text(encoding="utf-8").split())


def test_every_function_of_duckdb_is_either_listed_or_refused(sample):
    """A new function is refused. If it reads the trace only, add it to the list; else to `REFUSED`."""
    with database.connect() as connection:
        attach.attach_sqlite(connection, sample("churn"))
        functions = connection.execute(
            """SELECT DISTINCT function_name FROM duckdb_functions()
            WHERE function_type <> 'pragma' AND NOT regexp_matches(function_name, '^(icu_)?collate_')"""
        ).fetchall()
    names = {name for (name,) in functions}
    names -= {"IS DISTINCT FROM", "IS NOT DISTINCT FROM"}  # a query's names are compared in lower case
    assert set(sandbox.find_refused_functions(names)) == names - REVIEWED == names & REFUSED
    assert not REVIEWED & REFUSED


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("upper", "SELECT upper('a') AS x"),
        ("upper", "SELECT ('a').UPPER() AS x"),
        ("sum", "SELECT sum(duration_ns) OVER () AS x FROM kernels"),
        ("range", "SELECT * FROM range(3)"),
        ("range", "CREATE TEMP TABLE mine AS FROM range(3)"),
        ("hash", "CREATE TEMP MACRO mine(x) AS hash(x)"),
    ],
)
def test_a_function_that_is_not_in_the_list_is_refused(sample, tmp_path, monkeypatch, name, query):
    """A DuckDB whose functions are not all in the list: the list lacks one of them."""
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog/duckdb_functions.txt").write_text("\n".join(REVIEWED - {name}), encoding="utf-8")
    with nsys_insight.open(sample("churn")) as trace:
        monkeypatch.setattr(sandbox, "queries_folder", lambda: tmp_path)
        sandbox._read_listed_functions.cache_clear()
        try:
            with pytest.raises(QueryError, match=f"^{name} is not available: SQL reads the trace") as failure:
                run_statements(trace, query)
            assert failure.value.hint
        finally:
            sandbox._read_listed_functions.cache_clear()


def test_macros_and_words_that_are_no_functions_are_not_refused(churn):
    run_statements(churn, "CREATE TEMP MACRO my_double(x) AS 2 * x; SELECT my_double(duration(1, 4)) AS x FROM kernels")
    assert churn.sql("WITH reader(a) AS (VALUES (my_double(3))) SELECT a::DECIMAL(9, 1) AS a FROM reader")["a"][0] == 6
    with pytest.raises(QueryError, match="there is no function"):
        churn.query("SELECT read_everything('x')")


def test_deep_sql_is_refused_in_a_sentence(sample):
    query = f"SELECT {'CASE WHEN true THEN ' * 900}1{' END' * 900} AS x"
    with nsys_insight.open(sample("churn")) as trace, pytest.raises(QueryError, match="nested too deeply"):
        trace.query(query)


def test_a_refused_function_name_may_be_a_column_name(sample):
    with nsys_insight.open(sample("churn")) as trace:
        assert trace.sql("SELECT 1 AS query, 'read_csv(' AS glob -- sqlite_scan('x')")["query"].item() == 1


def test_a_pack_is_restricted_too(sample, tmp_path):
    pack = tmp_path / "peek.sql"
    header = 'title="a"\ndescription="b"\nreading="c"\nempty="d"\n[columns]\ncontent="e"\n'
    pack.write_text(f"/*\n{header}*/\nSELECT content FROM read_text('/etc/hostname')")
    with nsys_insight.open(sample("churn")) as trace, pytest.raises(QueryError, match="read_text is not available"):
        trace.answer(parse_pack(pack))


# Inside of another statement, DuckDB parses each of these as a query. Alone, it is several statements, or not a query.
BREAKING_OUT = [
    "SELECT 'a' AS x); CREATE TABLE pwned AS SELECT 1 AS x; SELECT * FROM (SELECT 'a' AS x",
    "SELECT 'a' AS x); DROP TABLE scope; SELECT * FROM (SELECT 'a' AS x",
    "SELECT 'a' AS x); ATTACH 'HERE/other.sqlite' AS o (TYPE sqlite); SELECT * FROM (SELECT 'a' AS x",
    "SELECT 'a' AS x) UNION ALL (SELECT 'b'",
    "SELECT 'a' AS x); CREATE TABLE pwned AS SELECT 1; SELECT * FROM (SELECT 'a'".replace(" ", "\u00a0"),
    "SELECT 'a' AS x; CREATE TABLE pwned AS SELECT 1",
    "SELECT 'a' AS x\0); CREATE TABLE pwned AS SELECT 1; SELECT * FROM (SELECT 1",
    "CREATE TABLE pwned AS SELECT 1",
    "EXPLAIN ANALYZE CREATE TABLE pwned AS SELECT 1",
    "ATTACH 'HERE/new.duckdb'",
    "COPY (SELECT 1) TO 'HERE/out.csv'",
    *(
        f"SELECT name AS x FROM {space}sqlite_scan{space}('HERE/other.sqlite', 'people')"
        for space in ("\u00a0", "\u200b", "\u2003", "\u2060", "\u3000", "\ufeff", "\u00ad", "\u0085", "\u2028")
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def churn():
    """Open the trace that all of these queries run on."""
    with nsys_insight.open(REPOSITORY / "sample_traces" / "churn.sqlite") as trace:
        yield trace


@pytest.mark.parametrize("entry", ["report", "note", "rows", "dicts", "query", "stream", "parquet", "define", "check"])
def test_a_query_cannot_end_the_statement_that_contains_it(churn, tmp_path, entry):
    (folder := tmp_path / "here").mkdir()
    with contextlib.closing(sqlite3.connect(folder / "other.sqlite")) as database, database:
        database.execute("CREATE TABLE people AS SELECT 'hunter2' AS name")
    pack, is_text_of_pack = tmp_path / "peek.sql", entry in ("report", "check")
    before = file_status(folder)
    calls = {
        "report": lambda _: churn.answer(parse_pack(pack)),
        "note": lambda _: churn.answer(parse_pack(pack)),
        "rows": churn.rows,
        "dicts": churn.dicts,
        "query": churn.query,
        "stream": lambda query: list(churn.stream(Statement(query)).batches()),
        "parquet": lambda query: churn.stream(Statement(query)).write_parquet(folder / "answer.parquet"),
        "define": lambda query: churn.define(Statement(query, "pwned")),
    }
    for text in BREAKING_OUT[:-8] if entry == "check" else BREAKING_OUT:  # the check opens a trace for each pack
        query = text.replace("HERE", str(folder))
        if entry == "define" and query == "CREATE TABLE pwned AS SELECT 1":
            continue
        note = query.replace("\0", "\\u0000").replace("\u0085", "\\u0085") if entry == "note" else "SELECT NULL"
        header = 'title="a"\ndescription="b"\nreading="c"\nempty="d"\n[columns]\nx="e"\n[notes.n]\ntext="f"\n'
        header += f'query="""{note}"""\n'
        pack.write_text(f"/*\n{header}*/\n{query if is_text_of_pack else 'SELECT 1 AS x ORDER BY 1'}")
        if entry == "check":
            assert pack_check.find_problems(pack), text
        else:
            with pytest.raises(QueryError):
                print(text, calls[entry](query))
        tables = churn._connection.duckdb.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        assert ("pwned",) not in tables, text
        assert ("scope",) in tables, text
    assert file_status(folder) == before


def test_tables_of_the_expected_schema_differ_in_their_columns(sample):
    """DuckDB 1.5.5 confuses two SQLite tables with the same columns. No query counts the rows of these tables."""
    for name in ("churn", "decode_eager", "decode_fresh", "decode_graph_whole"):
        columns = sqlite_file.read_sqlite_columns(sample(name))
        equal_pairs = [
            {left, right}
            for left in expected_schema.read_expected_schema().keys() & columns.keys()
            for right in expected_schema.read_expected_schema().keys() & columns.keys()
            if left < right and columns[left] == columns[right]
        ]
        assert all(table.startswith(("ENUM_", "META_DATA_")) for pair in equal_pairs for table in pair), equal_pairs


def test_two_tables_with_equal_columns_are_not_confused(sample):
    query = """
        SELECT 'memory' AS what, count(*) AS n, min(label) AS least FROM raw.ENUM_CUDA_MEM_KIND
        UNION ALL SELECT 'copy', count(*), min(label) FROM raw.ENUM_CUDA_MEMCPY_OPER ORDER BY what"""
    with contextlib.closing(sqlite3.connect(sample("churn"))) as database:
        expected = [
            (name, *database.execute(f"SELECT count(*), min(label) FROM {table}").fetchone())
            for name, table in (("copy", "ENUM_CUDA_MEMCPY_OPER"), ("memory", "ENUM_CUDA_MEM_KIND"))
        ]
    with nsys_insight.open(sample("churn")) as trace:
        assert trace.sql(query).rows() == expected
    if extension.find_scanner():
        assert duckdb.__version__ == "1.5.5", "check whether DuckDB still confuses these tables"
