"""Texts that look like secrets are masked, and copies of a trace have no data of the machine or its user."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from command_line import run
from opening import only_rules
from sweeps import sweep
from synthetic import Trace

import nsys_insight
from nsys_insight.ingest import private
from nsys_insight.text.secrets import MASK, is_random, mask_arguments, mask_secrets

REPOSITORY = Path(__file__).parents[1]
# Invented keys of the right form.
KEY = "sk-" + "a1B2c3D4e5F6g7H8"
KEYS = [
    KEY, "hf_" + "Q7w8E9r0T1y2U3i4", "ghp_" + "x9Y8z7" * 6, "AKIA" + "Q3W4E5R6T7Y8U9I0", "nvapi-" + "Zx9-Cv8_Bn7Mm6Qq5",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "xoxb-" + "123456789012-abcDEF",
    "glpat-" + "a1b2c3d4e5f6g7h8i9j0", "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "aGVsbG8gd29ybGQgMTIzNDU2Nzg5M=",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_recognized_by_its_form_in_any_argument(key):
    for words in ([key], [f"--x={key}"], ["--header", f"Authorization: Bearer {key}"], ["sh", "-c", f"run {key} now"]):
        assert key not in " ".join(mask_arguments(words))
        assert MASK in " ".join(mask_arguments(words))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["--api-key", "abc"], ["--api-key", MASK]),
        (["--hf_token=abc"], [f"--hf_token={MASK}"]),
        (["--password", "12345"], ["--password", MASK]),
        (["DB_PASSWORD=a b"], [f"DB_PASSWORD={MASK} b"]),
        (["AWS_SECRET_ACCESS_KEY=a/b"], [f"AWS_SECRET_ACCESS_KEY={MASK}"]),
        (["-c", "os.environ['HF_TOKEN'] = 'abc'"], ["-c", f"os.environ['HF_TOKEN'] = '{MASK}'"]),
        (["sh", "-c", "run --secret 'a b' --n 1"], ["sh", "-c", f"run --secret '{MASK}' --n 1"]),
        (["https://me:pw@host/x?token=abc&n=1"], [f"https://{MASK}@host/x?token={MASK}&n=1"]),
        (["postgres://me:pw@host/db"], [f"postgres://{MASK}@host/db"]),
        (["DB_PASS=12345"], [f"DB_PASS={MASK}"]),
        (["--pass", "abc"], ["--pass", MASK]),
        (["--db-pass", "abc"], ["--db-pass", MASK]),
        (["--creds=abc"], [f"--creds={MASK}"]),
        (["--cookie", "id=abc"], ["--cookie", MASK]),
        (["-H", "Cookie: id=abc; theme=x"], ["-H", f"Cookie: {MASK}"]),
        (["/usr/bin/curl", "-s", "-u", "me:pw", "x"], ["/usr/bin/curl", "-s", "-u", MASK, "x"]),
        (["curl", "--user=me:pw", "-ume:pw"], ["curl", f"--user={MASK}", f"-u{MASK}"]),
        (["sh", "-c", "curl -s -u me:pw https://x"], ["sh", "-c", f"curl -s -u {MASK} https://x"]),
        (["sshpass", "-p", "pw", "ssh", "x"], ["sshpass", "-p", MASK, "ssh", "x"]),
        (["sh", "-c", "sshpass -p 'a b' ssh x"], ["sh", "-c", f"sshpass -p '{MASK}' ssh x"]),
        (["mysql", "-ppw", "-p", "db"], ["mysql", f"-p{MASK}", "-p", "db"]),
        (["DBPWD=abc", "LICENSE_KEY=1-2"], [f"DBPWD={MASK}", f"LICENSE_KEY={MASK}"]),
        (["--license-key", "1-2", "--passcode=47"], ["--license-key", MASK, f"--passcode={MASK}"]),
        (["docker", "login", "-u", "me", "-p", "abc"], ["docker", "login", "-u", "me", "-p", MASK]),
        (["/usr/bin/podman", "login", "-p=12345", "x"], ["/usr/bin/podman", "login", f"-p={MASK}", "x"]),
        (["sh", "-c", "docker login -p abc x"], ["sh", "-c", f"docker login -p {MASK} x"]),
        (["client", "-u", "me", "-p", "abc"], ["client", "-u", "me", "-p", MASK]),
        (["client", "-p", "abc", "-u", "me"], ["client", "-p", MASK, "-u", "me"]),
        (["sh", "-c", "client --user me -p 'a b'"], ["sh", "-c", f"client --user me -p '{MASK}'"]),
        (["<password>a b</password>"], [f"<password>{MASK}</password>"]),
        (['<db:Password x="1">ab</db:Password>'], [f'<db:Password x="1">{MASK}</db:Password>']),
        (["<password><![CDATA[ab]]></password>"], [f"<password><![CDATA[{MASK}]]></password>"]),
        (['<add key="password" value="a b"/>'], [f'<add key="password" value="{MASK}"/>']),
        (['f(password="a b", x=1)'], [f'f(password="{MASK}", x=1)']),
        ([r"{password=\"abc\"}"], [rf"{{password=\"{MASK}\"}}"]),
        ([r'password="a\"bc"'], [f'password="{MASK}"']),
        (["--password=a,b;c&d)e f", "--n=1"], [f"--password={MASK}", "--n=1"]),
        (["redis-cli", "-a", "abc"], ["redis-cli", "-a", MASK]),
    ],
)
def test_a_value_with_the_name_of_a_secret_is_masked(line, expected):
    assert mask_arguments(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        ["python3", "decode.py", "--layers", "4", "--tokens", "32", "--max-new-tokens=128", "--token-count", "5"],
        ["--pad-token", "<pad>", "--eos_token=</s>", "--bos-token", "50256", "--token", "7", "--tokenizer", "gpt2"],
        ["--model", "Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "--key-cache", "int8", "--kv-dtype=fp8_e4m3"],
        ["--pass", "3", "--num-pass=2", "--bypass=x", "--compass", "x", "-u", "a:b", "-p", "8080", "--passes", "4"],
        ["ncu", "-p", "all", "--user", "me", "--cookies=false", "curl", "-o", "x:y"],
        ["--api-key", "$API_KEY", "--token", "${TOKEN}", "--password", "", "--use-auth-token", "true"],
        ["--config", "/srv/app/configs/llama_3_70b_tp8_fp16.yaml", "--seed", "12345678901234567890123"],
        ["user@host", "git@github.com:owner/name.git", "--signal=15", "--design", "x", "--keyboard", "us"],
        [
            "--passes=3",
            "-p",
            "8080",
            "token_count=5",
            "--tokens",
            "128",
            "--keyboard=us",
            "keyboard=us",
            "<passes>3</passes>",
        ],
        ["docker", "run", "-u", "1000", "-p", "8080:80"],
        ["squeue", "-u", "me", "-p", "gpu"],
        ["srun", "-p", "gpu"],
        ["python", "-u", "train.py", "-p", "fast"],
        ["mkdir", "-p", "x"],
        ["docker", "run", "-p", "x"],
        ["login", "-p", "x"],
        ["PWD=/srv/app", "OLDPWD=/srv", "sort_key=name", "--key-cache", "int8", "monkey=x", "<token>5</token>"],
        ["--id", "d92473dd-e711-2517-7a44-d11dd7a88c16"],
    ],
)
def test_other_values_are_not_masked(line):
    assert mask_arguments(line) == line


def test_kernel_names_do_not_look_random(sample):
    for name in ("churn", "decode_eager"):
        with nsys_insight.open(sample(name)) as trace:
            names = [row.name for row in trace.rows("SELECT DISTINCT name FROM kernels")]
        assert names
        assert [mask_secrets(name) for name in names] == names
    assert not is_random("SupportsPmuCountersOfTheGpu")


def test_only_the_secret_is_masked():
    assert mask_secrets("token=a banana") == f"token={MASK} banana"


@pytest.mark.slow
def test_a_long_text_is_masked_in_bounded_time():
    for text in (
        "-" * 10**6,
        "secret" * 10**5,
        "a-" * 10**6 + "key",
        "x://" * 10**5 + "@",
        "token:" * 10**5,
        "aB3" * 10**6,
    ):
        mask_secrets(text, include_random=True)


# Output about a trace ---------------------------------------------------------------------------------------------

ARGUMENTS = [
    "--api-key",
    "opensesame",
    f"--key={KEY}",
    "--tokens",
    "32",
    "https://me:opensesame@host/x",
    "--password=opensesame",
]
SECRETS = ("opensesame", KEY, Trace.SECRET)


@pytest.fixture
def secret_trace(tmp_path):
    """Write a trace with keys in its command line, and with environment, host and user names in all their tables."""
    trace = Trace()
    trace.thread().launch("k(float *)", runs=5_000)
    trace.row("META_DATA_CAPTURE", name="PROCESS_0:COMMAND", value="python3")
    for number, argument in enumerate(ARGUMENTS):
        trace.row("META_DATA_CAPTURE", name=f"PROCESS_0:ARGUMENT_{number}", value=argument)
    for name in ("EXPORT_HOST", "EXPORT_USER", "DEVICE_DISPLAY_NAME", "PROCESS_0:USER_NAME"):
        trace.row("META_DATA_CAPTURE", name=name, value=Trace.SECRET)
    for name in ("DeviceEnvironment", "Hostname"):
        trace.row("TARGET_INFO_SYSTEM_ENV", name=name, value=Trace.SECRET, devStateName="", nameEnum=1)
    path = trace.write(tmp_path / "secretive.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM META_DATA_CAPTURE WHERE name LIKE 'PROCESS_0:%' AND value IN ('app', './app')")
        database.execute(
            "INSERT INTO StringIds VALUES (999999, ?)", (f"USER={Trace.SECRET}\0HOME=/home/{Trace.SECRET}\0",)
        )
    return path


def run_command(*command):
    process = run(*command, cwd=REPOSITORY)
    return process.returncode, process.stdout, process.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["info"], ["report"], ["ncu", "plan"], ["ncu", "plan", "--command-only"], ["ncu", "plan", "--run"],
        ["ncu", "plan", "--run", "--trust-trace"], ["sql", "-n", "0", "FROM capture"],
        *sweep([["info", "--format", "json"], ["ncu", "plan", "--format", "json"]]),
        ["sql", "-n", "0", "FROM capture UNION ALL SELECT 'x', name FROM strings"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_keys_in_the_command_line_are_not_shown(secret_trace, command):
    words = (
        [command[0], secret_trace, *command[1:]] if command[0] != "ncu" else [*command[:2], secret_trace, *command[2:]]
    )
    with only_rules():
        code, out, err = run_command(*words)
    assert not [secret for secret in SECRETS if secret in out + err]
    assert "--api-key" in out
    assert "32" in out, "values that are not secret are shown"
    assert code == (2 if "--run" in command else 0), err


@pytest.mark.slow
def test_the_page_shows_no_secrets(secret_trace, tmp_path):
    assert run_command("report", secret_trace, "-o", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert not [secret for secret in SECRETS if secret in page]
    assert f"--api-key {MASK}" in page


@pytest.mark.slow
@pytest.mark.parametrize("target_name", ["trace.duckdb", "folder", "timeline.pftrace"])
def test_a_converted_file_has_no_secrets(secret_trace, tmp_path, target_name):
    target = tmp_path / target_name
    assert run_command("convert", secret_trace, "-o", target)[0] == 0
    files = [file for file in target.rglob("*") if file.is_file()] if target.is_dir() else [target]
    assert files
    for file in files:
        assert not [secret for secret in SECRETS if secret.encode() in file.read_bytes()], file
    if target_name != "timeline.pftrace":
        with nsys_insight.open(secret_trace) as before, nsys_insight.open(target) as after:
            for view in ("capture", "kernels", "info"):
                answers = [
                    trace.answer(view).dicts() if view == "info" else trace.dicts(f"FROM {view} ORDER BY ALL")
                    for trace in (before, after)
                ]
                assert answers[0] == answers[1], view


@pytest.mark.parametrize("change", ["", "CREATE VIEW odd AS SELECT 1 AS a", "PRAGMA journal_mode = WAL"])
def test_the_cache_has_no_secrets(secret_trace, cache, change):
    """Check the DuckDB copy, and the SQLite copy of a file that is not read in place."""
    with contextlib.closing(sqlite3.connect(secret_trace)) as database:
        database.execute(change)
    code, out, err = run_command("info", secret_trace, "--cache")
    assert code == 0, err
    assert "python3 --api-key" in out
    cache_files = [file for file in cache.rglob("*") if file.is_file()]
    assert [file for file in cache_files if file.suffix in (".duckdb", ".sqlite")]
    for file in cache_files:
        assert Trace.SECRET.encode() not in file.read_bytes(), file
    assert Trace.SECRET.encode() in secret_trace.read_bytes(), "the trace is not changed"


def test_private_data_is_removed_from_an_export(secret_trace):
    private.remove_private(secret_trace)
    assert Trace.SECRET.encode() not in secret_trace.read_bytes()
    with nsys_insight.open(secret_trace) as trace:
        assert trace.rows("SELECT count(*) AS n FROM kernels")[0].n == 1
