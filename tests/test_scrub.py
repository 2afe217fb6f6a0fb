"""A scrubbed trace has no data of a machine or its user, and every report gives the same numbers for it."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
from pathlib import Path

import hostile_names
import pytest
from command_line import run
from many_traces import make_full_trace
from sweeps import sweep

import nsys_insight
from nsys_insight.errors import QueryError, TraceError, UsageError
from nsys_insight.packs.library import built_in_packs
from nsys_insight.scrub import scrub as scrubbing
from nsys_insight.scrub import verify
from nsys_insight.scrub.rewrite import Rewriter
from nsys_insight.scrub.scrub import scrub
from nsys_insight.scrub.sensitive import Sensitive

REPOSITORY = Path(__file__).parents[1]
SAMPLES = sorted((REPOSITORY / "sample_traces").glob("*.sqlite"))
# Words that a file of nsys can contain on any machine: those of CUDA and of the system.
COMMON = re.compile(r"[\d.,:; -]*|true|false|(?:x86_64|aarch64)\S*|(?:compute,utility|graphics)\S*|(?:en_US|C)\.UTF-?8")


def run_scrub(*command):
    process = run("scrub", *command, cwd=REPOSITORY)
    return process.returncode, process.stdout, process.stderr


@pytest.fixture
def skip_comparison(monkeypatch):
    """Skip the comparison of all reports, which takes seconds, where a test is about something else."""
    monkeypatch.setattr(scrubbing, "find_differing_reports", lambda *_: [])


@pytest.fixture
def compare_few(monkeypatch):
    """Compare three reports instead of all."""
    few_packs = {name: built_in_packs()[name] for name in ("info", "nvtx", "top")}
    monkeypatch.setattr(verify, "built_in_packs", lambda: few_packs)


# An independent search -----------------------------------------------------------------------------------------------


def find_variables(path):
    """Find every environment variable of a trace in the bytes of its texts, without any code of scrub."""
    variables = {}
    with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        database.text_factory = bytes
        tables = {name.decode() for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "META_DATA_CAPTURE" in tables:
            for (value,) in database.execute("SELECT value FROM META_DATA_CAPTURE WHERE name LIKE '%ENVIRONMENT%'"):
                name, _, value_bytes = value.partition(b"=")
                variables[name] = value_bytes.strip(b'"')
        texts = [value for (value,) in database.execute("SELECT value FROM StringIds") if value and b"\0" in value]
        if "TARGET_INFO_SYSTEM_ENV" in tables:
            value_bytes = database.execute("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'DeviceEnvironment'")
            texts += [value.replace(b";", b"\0") for (value,) in value_bytes]
        for text in texts:
            for variable in text.split(b"\0"):
                name, separator, value_bytes = variable.partition(b"=")
                if separator:
                    variables[name] = value_bytes
    return variables


def remaining_values(variables, content):
    """Return the variables whose values are in the bytes of a file, except common words."""
    return {
        name: value
        for name, value in variables.items()
        if len(value) >= 8 and not COMMON.fullmatch(value.decode("utf-8", "replace")) and value in content
    }


def check_scrubbed(path, tmp_path):
    target = tmp_path / "shared.sqlite"
    before = path.read_bytes()
    scrub(path, target)
    assert path.read_bytes() == before
    after = target.read_bytes()
    variables = find_variables(path)
    assert remaining_values(variables, after) == {}
    for name in (b"USER", b"LOGNAME", b"HOSTNAME", b"HOME", b"SLURM_JOB_USER", b"SLURMD_NODENAME"):
        value = variables.get(name, b"")
        if len(value) > 4 and value not in (b"/root", b"/tmp"):
            assert value not in after, name
    assert find_variables(target) == {}
    return variables


@pytest.mark.parametrize(
    "path",
    [
        path if path.stem in ("churn", "decode_graph_node") else pytest.param(path, marks=pytest.mark.sweep)
        for path in SAMPLES
    ],
    ids=lambda path: path.stem,
)
def test_scrubbed_samples_have_no_private_values(path, tmp_path, skip_comparison):
    assert remaining_values(check_scrubbed(path, tmp_path), path.read_bytes()), "the search finds what is there"


@pytest.mark.sweep
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_scrubbed_samples_give_the_same_reports(path, tmp_path):
    assert scrub(path, tmp_path / "shared.sqlite").differing_reports == []


@pytest.mark.parametrize("name", [*sweep(["cloverleaf.a100.nsys2024_5", "mordred.nsys2021_2",
                                  "power_iteration.t4.nsys2025_3"]), "saxpy_mpi.a100.nsys2022_2"])  # fmt: skip
def test_scrubbed_foreign_traces_have_no_private_values(shared, tmp_path, name, skip_comparison):
    path = shared / "foreign" / f"{name}.sqlite"
    if not path.exists():
        pytest.skip("needs the traces in ../shared/foreign")
    assert len(remaining_values(check_scrubbed(path, tmp_path), path.read_bytes())) > 5, (
        "the search finds what is there"
    )


# A trace with planted secrets --------------------------------------------------------------------------------

KEY = "hf_" + "Q7w8E9r0T1y2U3i4"
SECRETS = {
    "user": "jdoe42", "host": "gpu-node17", "mail": "jane.doe@corp.example", "password": "opensesame", "key": KEY,
    "home": "/home/jdoe42/secret-project/data.bin", "library": "/opt/corp/lib/libfoo.so.1", "ip": "10.20.30.40",
    "ip 6": "fe80::1ff:fe23:4567:890a", "mac": "52:54:00:12:34:56", "value": "project-xanadu-7",
    "other": "slack-helper", "uuid": "5c9a5380-d76d-414b-3975-82bcaebbab73", "address": "tracking.corp.example",
    "windows": r"C:\Users\jane\x.txt", "printed": "loss of xanadu", "bytes": "blob of jdoe42",
}  # fmt: skip


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Write a trace with all of these secrets in known and unknown tables, in columns of all types."""
    trace = make_full_trace()
    trace.thread(pid=900, name="slack-helper-io", process=SECRETS["other"])
    rows = {
        "PROCESS_0:COMMAND": "python3", "PROCESS_0:ARGUMENT_0": "/srv/app/train.py",
        "PROCESS_0:ARGUMENT_1": "--password", "PROCESS_0:ARGUMENT_2": SECRETS["password"],
        "PROCESS_0:ARGUMENT_3": SECRETS["home"],
        "PROCESS_0:ARGUMENT_4": f"http://{SECRETS['address']}:5000/x", "PROCESS_0:WORKING_DIR": "/srv/app",
        "PROCESS_0:USER_NAME": SECRETS["user"], "DEVICE_DISPLAY_NAME": SECRETS["host"],
        "PROCESS_0:ENVIRONMENT_VARIABLE": f'JOB="{SECRETS["value"]}"',
    }  # fmt: skip
    for name, value in rows.items():
        trace.row("META_DATA_CAPTURE", name=name, value=value)
    sentences = [f"{kind} is {value}" for kind, value in SECRETS.items() if kind not in ("other", "printed", "bytes")]
    host = trace.thread(pid=100)
    for text in (
        *sentences,
        *sentences,
        "/srv/app/train.py:12",
        "/encoder/layer.0/MatMul",
        "10 / 20",
        "version 10.1.243.0",
    ):
        with host.nvtx(text):
            host.launch("void work<float>(float *)")
    for text in sentences:
        trace.diagnostic(text)
    path = trace.write(tmp_path_factory.mktemp("planted") / "planted.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        all_sentences = " and ".join(sentences)
        database.execute("CREATE TABLE UNKNOWN (id INTEGER PRIMARY KEY, number INTEGER, data BLOB, plain, real REAL)")
        database.execute("INSERT INTO UNKNOWN VALUES (1, ?, ?, ?, ?)", (all_sentences,) * 4)
        database.execute(
            "INSERT INTO UNKNOWN VALUES (2, 7, ?, ?, 0.5)", (all_sentences.encode(), b"\xff" + all_sentences.encode())
        )
        database.execute("INSERT INTO UNKNOWN VALUES (3, NULL, x'00ff', CAST(x'6162ff63' AS TEXT), NULL)")
        database.execute("INSERT INTO StringIds VALUES (990001, ?)", (f"USER=jdoe42\0JOB={SECRETS['value']}\0",))
        database.execute("INSERT INTO StringIds VALUES (990002, ?)", (SECRETS["printed"],))
        database.execute("CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER)")
        database.execute("INSERT INTO ProcessStreams VALUES (1, 990002, 990002)")
        database.execute("CREATE TABLE ANALYSIS_FILE (filename TEXT, content TEXT)")
        database.execute("INSERT INTO ANALYSIS_FILE VALUES ('/tmp/out.log', ?)", (SECRETS["printed"],))
    return path


@pytest.fixture(scope="module")
def scrubbed(planted, tmp_path_factory, pytestconfig):
    """Scrub it, and compare every fourth report; with `--all` all of them."""
    target = tmp_path_factory.mktemp("shared") / "shared.sqlite"
    some_packs = dict(list(built_in_packs().items())[:: 1 if pytestconfig.getoption("--all") else 4])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "built_in_packs", lambda: some_packs)
        return target, scrub(planted, target)


@pytest.mark.parametrize("kind", SECRETS)
def test_no_secret_is_in_the_scrubbed_file(planted, scrubbed, kind):
    if kind != "bytes":
        assert SECRETS[kind].encode() in planted.read_bytes()
    assert SECRETS[kind].encode() not in scrubbed[0].read_bytes()


def test_texts_that_are_not_private_stay(scrubbed):
    content = scrubbed[0].read_bytes()
    for text in (b"/program/train.py:12", b"/encoder/layer.0/MatMul", b"10 / 20", b"version 10.1.243.0", b"libfoo.so.1",
                 b"void work<float>(float *)", b"python3"):  # fmt: skip
        assert text in content, text


def test_replacements_are_the_same_in_all_tables(planted, scrubbed):
    """Equal texts stay equal, and different texts stay different: within each table, and between tables."""
    query = "SELECT text FROM NVTX_EVENTS ORDER BY rowid"
    with (
        contextlib.closing(sqlite3.connect(planted)) as original,
        contextlib.closing(sqlite3.connect(scrubbed[0])) as copy,
    ):
        before, after = (
            [row[0] for row in database.execute(query)]
            + [row[0] for row in database.execute("SELECT text FROM DIAGNOSTIC_EVENT ORDER BY rowid")]
            for database in (original, copy)
        )
        assert len(set(before)) == len(set(after)) == len(set(zip(before, after, strict=True)))
        tables = [
            name for (name,) in original.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        ]
        for table in tables:
            if not table.startswith("META_DATA") and not table.endswith("_ENV"):
                count = f"SELECT count(*) FROM {table}"
                assert original.execute(count).fetchone() == copy.execute(count).fetchone(), table
        assert copy.execute("SELECT typeof(number), data, typeof(plain) FROM UNKNOWN WHERE id = 3").fetchone() == (
            "null", b"", "text",
        )  # fmt: skip
        assert copy.execute("SELECT number, real FROM UNKNOWN WHERE id = 2").fetchone() == (7, 0.5)


def test_no_file_is_written_if_a_report_differs(planted, tmp_path, monkeypatch):
    def copy(source, target, *_):
        with contextlib.closing(sqlite3.connect(target)) as database, database:
            shutil.copyfile(source, target)
            database.execute("DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE rowid = 1")

    monkeypatch.setattr(scrubbing, "copy_export", copy)
    few_packs = {name: built_in_packs()[name] for name in ("top", "copies", "api")}
    monkeypatch.setattr(verify, "built_in_packs", lambda: few_packs)
    with pytest.raises(QueryError, match=r"different numbers in .*copies"):
        scrub(planted, tmp_path / "shared.sqlite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_remaining_random_texts_are_listed(tmp_path, planted):
    trace = Path(shutil.copy(planted, tmp_path / "trace.sqlite"))
    random = "aGVsbG8gd29ybGQgMTIzNDU2Nzg5"
    with contextlib.closing(sqlite3.connect(trace)) as database, database:
        database.execute("INSERT INTO NVTX_EVENTS (text, start, eventType, globalTid) VALUES (?, 1, 34, 1)", (random,))
    code, out, err = run_scrub(trace, "-o", tmp_path / "shared.sqlite", "--format", "csv")
    assert code == 0, err
    assert "NVTX_EVENTS.text,looks random,aGV***,1" in out, "an example does not show what is private"
    assert "reports give the same numbers" in err


@pytest.mark.slow
def test_with_hashed_names_only_reports_that_use_kernel_names_may_differ(planted, tmp_path):
    result = scrub(planted, tmp_path / "shared.sqlite", names=True)
    assert set(result.differing_reports) <= {
        "classify-kernels",
        "fusion",
        "fusion-candidate",
        "launch-census",
        "top",
        "roofline",
    }


@pytest.mark.slow
def test_names_of_kernels_are_hashed(planted, tmp_path, skip_comparison):
    for number, key in enumerate(("a", "a", None)):
        scrub(planted, tmp_path / f"{number}.sqlite", names=True, key=key)
    names = []
    for number in range(3):
        assert b"void work<float>" not in (tmp_path / f"{number}.sqlite").read_bytes()
        with nsys_insight.open(tmp_path / f"{number}.sqlite") as trace:
            names.append(frozenset(row.name for row in trace.rows("SELECT DISTINCT name FROM kernels")))
    with nsys_insight.open(planted) as trace:
        assert {len(run_names) for run_names in names} == {len(trace.rows("SELECT DISTINCT name FROM kernels"))}
    assert names[0] == names[1]
    assert names[2] != names[0], "without a key they match nothing"


@pytest.mark.slow
def test_times_are_shifted_and_dates_are_removed(planted, tmp_path, monkeypatch):
    later = make_full_trace().shifted(10**15).write(tmp_path / "later.sqlite")
    for path in (later, planted):
        scrub(path, tmp_path / "shared.sqlite", shift_times=True, force=True)
        with nsys_insight.open(path) as original, nsys_insight.open(tmp_path / "shared.sqlite") as copy:
            before, after = (
                trace.rows("SELECT min(start_ns) AS s, max(end_ns) AS e FROM wall")[0] for trace in (original, copy)
            )
            assert (after.s, after.e) == (0, before.e - before.s)
        assert b"2026-01-02" not in (tmp_path / "shared.sqlite").read_bytes()
        monkeypatch.setattr(scrubbing, "find_differing_reports", lambda *_: [])  # one comparison is enough


@pytest.mark.slow
def test_files_with_unusual_features_are_scrubbed(planted, tmp_path, skip_comparison):
    """Scrub a file with a view, one in WAL mode, and one with a table without row ids."""
    for number, change in enumerate(["CREATE VIEW odd AS SELECT value FROM StringIds", "PRAGMA journal_mode = WAL",
                                     "CREATE TABLE two (a TEXT PRIMARY KEY) WITHOUT ROWID"]):  # fmt: skip
        path = Path(shutil.copy(planted, tmp_path / f"{number}.sqlite"))
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute(change)
            if "two" in change:
                database.execute("INSERT INTO two VALUES (?)", (SECRETS["home"],))
        scrub(path, tmp_path / "shared.sqlite", force=True)
        content = (tmp_path / "shared.sqlite").read_bytes()
        assert not [value for value in SECRETS.values() if value.encode() in content]


def test_a_report_file_is_exported_with_a_note(tmp_path, monkeypatch, planted, skip_comparison):
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"NVIDIA Tegra Profiler Report" + b"\0" * 1000)
    notes = []
    monkeypatch.setattr(scrubbing, "export", lambda _, target, **__: Path(shutil.copy(planted, target)))
    scrub(report, tmp_path / "shared.sqlite", note=notes.append)
    assert SECRETS["home"].encode() not in (tmp_path / "shared.sqlite").read_bytes()
    assert "only nsys can write a report (.nsys-rep), so this writes a .sqlite, which is also a trace" in notes


def test_nothing_is_written_for_a_damaged_file(planted, tmp_path):
    content = bytearray(planted.read_bytes())
    content[20_000:60_000] = b"\xff" * 40_000
    (tmp_path / "damaged.sqlite").write_bytes(content)
    with pytest.raises(TraceError, match="damaged"):
        scrub(tmp_path / "damaged.sqlite", tmp_path / "shared.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.sqlite"]


@pytest.mark.slow
@pytest.mark.parametrize("shift_times", [*sweep([False]), True])
def test_invalid_rows_are_scrubbed_too(sample, tmp_path, shift_times):
    path = Path(shutil.copy(sample("churn"), tmp_path / "trace.sqlite"))
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for change in ("start = 9223372036854775807", "end = 'text of /home/jane'", "start = -9223372036854775808"):
            row = "(SELECT min(rowid) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start BETWEEN 1 AND 1e15 AND end > start)"
            database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {change} WHERE rowid = {row}")
    scrub(path, tmp_path / "shared.sqlite", shift_times=shift_times)
    assert b"jane" not in (tmp_path / "shared.sqlite").read_bytes()


@pytest.mark.slow
def test_hostile_names_are_scrubbed_like_other_names(tmp_path):
    path = hostile_names.write_hostile_trace(tmp_path / "hostile.sqlite")
    assert scrub(path, tmp_path / "shared.sqlite").differing_reports == []
    assert hostile_names.INJECTION.encode() in (tmp_path / "shared.sqlite").read_bytes()


def test_impossible_outputs_are_usage_errors(planted, tmp_path):
    (tmp_path / "there.sqlite").write_bytes(b"mine")
    for output, match in ((planted, "is the trace itself"), (tmp_path / "there.sqlite", "exists already"),
                          (tmp_path / "shared.nsys-rep", "only nsys can")):  # fmt: skip
        with pytest.raises(UsageError, match=match):
            scrub(planted, output)
    assert (tmp_path / "there.sqlite").read_bytes() == b"mine"
    assert run_scrub(planted, "-o", tmp_path / "a.sqlite", "--key", "x")[0] == 2


# One text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at::native::max_kernel<float>", None), ("a/b per c/d", None), ("layer 1.2.3.4.5", None),
        ("c10::add::dead", None), ("A=/usr/a:/usr/b/libc.so.6", "A=/folder_1/file_1:/folder_2/libc.so.6"),
        ("cuda 12.4.1.1 so", "cuda address_1 so"), ("libx.so.11.7.60.1", None), ("v10.1.243.0", None), ("/", None),
        ("/home/max/x.py", "/folder_1/file_1.py"),
        ("file:///home/a/b", "file:///folder_1/file_1"), ("~/x/y", "/folder_1/file_1"), ("max", "user_1"),
        ("reduce_max", None), ("run on node-a7", "run on host_1"), ("http://node-a7/x", "http://host_1/x"),
        ("memcpy@GLIBC_2.2.5", None), ("12:34:56", None), ("tok_s: 3 tokens=5 token: 7", None),
    ],
)  # fmt: skip
def test_only_the_private_words_of_a_text_are_rewritten(text, expected):
    assert Rewriter(Sensitive(users={"max"}, hosts={"node-a7"})).rewrite(text) == (
        text if expected is None else expected
    )


PRIVATE = [
    ("/fsx/team/run", "team"), ("--config=/fsx/team x/run.yaml", "team x run"), ("open(/ceph/acme b)", "acme b)"),
    ("//nas/acme/roe", "nas acme roe"), ("profile in C:/Users/Jane Roe", "Jane Roe"), ("node:/export/acme", "acme"),
    ("/ceph/my data/acme 3", "acme 3"), ("cfg=/lustre01/acme,/x9/roe", "acme roe"), ("-I/fsx/acme", "acme"),
    ("cp /ceph/my\\ data/acme /x9/roe", "acme roe"), ("'/ceph/acme b (1)/roe'", "acme (1) roe"),
    ("CKPT=/vast/acme/exp #4/roe", "acme exp roe"), ("/ceph/lr=0.1,bs=4/roe", "lr= roe"),
    ("../acme/roe.bin", "acme roe"), ("$SCRATCH/acme/roe", "acme roe"), ("file://localhost/tank/acme", "tank acme"),
    ("sqlite:////tank/acme/db", "acme"), ("s3://acme/roe/x.pt", "acme roe"),
    ("<path>/ceph/acme b</path>", "acme b<"), ("/folder_1/roe", "roe"),
    (r"C:\Users\Jane Roe\x.txt", "Jane Roe"), ("D:/acme", "acme"), (r"C:\Program Files (x86)\Acme\roe.exe", "x86 Acme"),
    (r"a=\\server7\share\Jane Roe", "server7 Jane Roe"), (r"\"C:\\Users\\jane\\my roe\"", "jane roe"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), PRIVATE)
def test_a_path_of_any_form_is_rewritten(text, words):
    rewritten = Rewriter(Sensitive()).rewrite(text)
    assert "/folder_1" in rewritten
    assert not [word for word in words.split() if word in rewritten], rewritten


@pytest.mark.parametrize(
    "text",
    [
        "a/b", "I/O", "N/A", "forward/backward", "/s", "12 tokens/s", "<unnamed>::f(float, int)/2", "w/ overlay",
        "/7/0", "/model/layers.0/self_attn/q_proj/MatMul + /Add_1", "/layer1/conv2", "/train/step 5", "//anon",
        "GET /v1/chat/completions", "torch/nn/modules/linear.py(114)", "read/write at 5 GB/s", "std::operator/(a, b)",
        "C:1 D:2", "\\d+ \\w+", "step@rank0", "step@gpu7", "memcpy@GLIBC_2.2.5", "f@plt", "?foo@bar@@YAXXZ",
        "mm_f16@tensor_op", "op@v2", "x@fp16",
    ],
)  # fmt: skip
def test_names_with_slashes_and_at_signs_stay(text):
    assert Rewriter(Sensitive()).rewrite(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("read /ceph/x at 5 GB/s", "read /folder_1/file_1 at 5 GB/s"),
        ("/home/x.py forward/backward", "/folder_1/file_1.py forward/backward"),
        ("copy /data/x and a/b", "copy /folder_1/file_1 and a/b"),
        ("/ceph/a (not found)", "/folder_1/file_1 (not found)"),
        ("/usr/bin/run train.py --n 3", "/folder_1/file_1 train.py --n 3"),
    ],
)
def test_what_follows_a_path_stays(text, expected):
    assert Rewriter(Sensitive()).rewrite(text) == expected


def test_a_kernel_name_has_only_paths_that_are_certain():
    lambda_name = "void f<lambda at /fsx/acme team/x.cu:3>(int)"
    rewriter = Rewriter(Sensitive(kernels={"f(x)/a/b, /c/d", lambda_name}))
    assert rewriter.rewrite("f(x)/a/b, /c/d") == "f(x)/a/b, /c/d"
    assert rewriter.rewrite(lambda_name) == "void f<lambda at /folder_1/file_1.cu:3>(int)"


UUID = "5c9a5380-d76d-414b-3975-82bcaebbab73"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((f"{prefix}{UUID}", f"{prefix}00000000-0000-0000-0000-000000000001")
          for prefix in ("GPU-", "MIG-GPU-", "MIG-", "run_", "x-")),
        (f"MIG-GPU-{UUID}/7/0", "MIG-GPU-00000000-0000-0000-0000-000000000001/7/0"),
        ("GPU-5c9a5380,GPU-6c9a5380", "GPU-identifier_1,GPU-identifier_2"),
        ("gpu 5c9a5380d76d414b397582bcaebbab73 busy", "gpu identifier_1 busy"),
        ("GPU-accelerated", "GPU-accelerated"), ("0x5c9a5380d76d", "0x5c9a5380d76d"),
    ],
)  # fmt: skip
def test_identifiers_are_rewritten_with_any_prefix(text, expected):
    assert Rewriter(Sensitive()).rewrite(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ssh jroe@gpu07", "ssh user_1@host_1"), ("(jroe@gpu07:22)", "(user_1@host_1:22)"),
        ("jroe@10.1.2.3", "user_1@address_1"), ("root@gpu07", "root@host_1"), ("root@localhost", "root@localhost"),
        ("jroe@n1.cluster01", "user_1@host_1"),
    ],
)  # fmt: skip
def test_a_user_at_a_host_without_a_domain_is_rewritten(text, expected):
    assert Rewriter(Sensitive()).rewrite(text) == expected


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_wide_text_in_cells_that_are_not_text_is_rewritten(planted, tmp_path, codec, skip_comparison):
    """Text alone is rewritten; text among numbers, which cannot be found with certainty, is dropped."""
    path = Path(shutil.copy(planted, tmp_path / "trace.sqlite"))
    private, public = "run of jdoe42 in /fsx/acme/x.bin", "run of a step"
    unmarked = private.encode("utf-16-le" if codec == "utf-16" else codec)
    cells = [private.encode(codec), b"\x07\0\0\x07" + unmarked, public.encode(codec)]
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE WIDE (data BLOB, text TEXT)")
        database.executemany("INSERT INTO WIDE VALUES (?, CAST(? AS TEXT))", [(cell, cell) for cell in cells])
    scrub(path, tmp_path / "shared.sqlite")
    content = (tmp_path / "shared.sqlite").read_bytes()
    for word in ("jdoe42", "acme"):
        for width in ("utf-16-le", "utf-16-be", "utf-32-le"):
            assert word.encode(width) in path.read_bytes() or width != codec
            assert word.encode(width) not in content
    with contextlib.closing(sqlite3.connect(tmp_path / "shared.sqlite")) as database:
        data = [cell for (cell,) in database.execute("SELECT data FROM WIDE ORDER BY rowid")]
    assert re.fullmatch(r"run of user_\d+ in /folder_\d+/file_\d+\.bin", data[0].decode(codec))
    assert data[1:] == [b"", cells[2]]


def test_remaining_private_texts_are_listed_without_stand_ins(planted, tmp_path, skip_comparison):
    """Names of tables and columns are copied: they stay, and are listed. Stand-ins are not."""
    path = Path(shutil.copy(planted, tmp_path / "trace.sqlite"))
    random = "aGVsbG8gd29ybGQgMTIzNDU2Nzg5"
    texts = [f"DB_PASSWORD=sesame{number} jroe@gpu07 GPU-{UUID} https://me:pw@acme/x" for number in range(2)]
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for text in [*texts, f"{random} a", f"{random} a"]:
            database.execute(
                "INSERT INTO NVTX_EVENTS (text, start, eventType, globalTid) VALUES (?, 1, 34, 1)", (text,)
            )
        database.execute('CREATE TABLE "jroe@gpu07" (a TEXT)')
    remaining_rows = scrub(path, tmp_path / "shared.sqlite").remaining.rows()
    assert [row for row in remaining_rows if row[0] != "definitions of tables"] == [
        ("NVTX_EVENTS.text", "looks random", "aGV*** a", 2)
    ]
    (row,) = (row for row in remaining_rows if row[0] == "definitions of tables")
    assert row[1] == "user and host"
    assert 'CREATE TABLE "jr***" (' in row[2]


@pytest.mark.parametrize("target_name", ["part.sqlite", *sweep(["part.duckdb"]), "part.pftrace"])
def test_a_part_is_converted_and_scrubbed(planted, tmp_path, target_name, compare_few):
    """The words to look for are those of the full trace: the part has no environment."""
    path = Path(shutil.copy(planted, tmp_path / "trace.sqlite"))
    scope = [] if target_name.endswith("duckdb") else ["--nvtx", f"user is {SECRETS['user']}"]
    for flags, is_scrubbed in (([], False), (["--scrub"], True)):
        process = run("convert", path, "-o", tmp_path / target_name, "--force", *scope, *flags)
        assert process.returncode == 0, process.stderr
        assert ("convert has not scrubbed it" in process.stderr) != is_scrubbed
        assert (SECRETS["user"].encode() in (tmp_path / target_name).read_bytes()) != is_scrubbed
    assert "What looks private and stays: nothing" in process.stdout
    assert [file.name for file in tmp_path.iterdir() if file.name not in ("trace.sqlite", target_name)] == []


@pytest.mark.slow
def test_a_text_of_any_length_takes_bounded_time():
    rewriter = Rewriter(Sensitive(users={"jdoe42"}, values={"project-xanadu-7"}))
    for text in (
        "/a" * 10**6,
        "1.1." * 10**6,
        "a:" * 10**6,
        "C:\\" * 10**5,
        "-" * 10**6,
        "a@a." * 10**5,
        "://" * 10**5,
        "~/" * 10**5,
        "/a b" * 10**5,
        "/a (b)" * 10**5,
        "/a=b," * 10**5,
        "/a" + " b" * 10**5,
        "'/a" * 10**5,
        ">/a/b" * 10**5,
        "$a" * 10**5,
        "\\a" * 10**5,
        "a@" * 10**5,
        "x@b-" * 10**5,
        "GPU-" * 10**5,
        "0" * 10**5 + "g",
    ):
        rewriter.rewrite(text)


@pytest.mark.slow
def test_data_of_ncu_next_to_the_trace_is_not_compared(sample, tmp_path):
    """It is of kernels of this trace: with it, reports have more columns than those of the copy."""
    path = Path(shutil.copy(sample("churn"), tmp_path / "trace.sqlite"))
    pages = REPOSITORY / "tests/data/ncu/churn.ncu.raw.csv"
    assert run("ncu", "import", pages, "-o", tmp_path / "trace.ncu.duckdb").returncode == 0
    outcome = run("scrub", path, "-o", tmp_path / "shared.sqlite")
    assert (outcome.returncode, (tmp_path / "shared.sqlite").is_file()) == (0, True), outcome.stderr


def test_a_copy_without_a_name_is_named_after_the_trace(tmp_path, planted, skip_comparison):
    assert run("scrub", planted, cwd=tmp_path).returncode == 0
    assert list(tmp_path.glob("*.scrubbed.sqlite"))
