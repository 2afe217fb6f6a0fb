"""The export of a report: with the real nsys, and with stand-ins for all failures that occurred."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from folder_contents import list_files

from nsys_insight import cache_folder
from nsys_insight.errors import Exit, ToolError, UsageError
from nsys_insight.ingest import cache_entries, nsys
from nsys_insight.ingest.export import export, get_export
from nsys_insight.ingest.identify import is_export

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for nsys are shell scripts")

ROOT = Path(__file__).parents[1]
REAL_REPORT = ROOT / "sample_traces" / "decode_eager.nsys-rep"
KERNELS = 6469  # of REAL_REPORT, counted by NVIDIA's own tool
# The output of nsys 2023.4 for a report of a later version.
BOOST = """\
[libprotobuf ERROR /build/message_lite.cc:133] Can't parse message of type "SessionState" because it is missing fields
Exportation error: /build/ProtobufUtils.cpp(73): Throw in function void QuadDProtobufUtils::ReadMessage(PbMessageLite&)
Dynamic exception type: boost::wrapexcept<QuadDCommon::ProtobufParseException>
std::exception::what: ProtobufParseException
"""


@pytest.fixture
def installed_nsys():
    try:
        tool = nsys.find_newest_nsys()
    except ToolError as error:
        pytest.skip(error.message)
    if not REAL_REPORT.exists():
        pytest.skip(f"{REAL_REPORT} is missing")
    return tool


@pytest.fixture
def real_report(installed_nsys, tmp_path):
    return copy_report(REAL_REPORT, tmp_path / "trace" / "run.nsys-rep")


@pytest.fixture
def report(tmp_path):
    return copy_report(None, tmp_path / "trace" / "run.nsys-rep")


@pytest.fixture
def good_export(tmp_path):
    """Return an export for a stand-in to copy."""
    return write_export(tmp_path / "good.sqlite")


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Make a script the only nsys. It reads `$IN` and writes `$OUT`."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("NSYS_INSIGHT_NSYS", raising=False)
    monkeypatch.setattr(nsys, "_INSTALL_FOLDERS", {sys.platform: (f"{tmp_path}/nsight-systems/*",)})

    def install(body, version="2024.1.1", build="33681190"):
        path = tmp_path / "nsight-systems" / version / "bin" / "nsys"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"#!/bin/sh\n"
            f'[ "$1" = --version ] && echo "NVIDIA Nsight Systems version {version}-2411{build}v0" && exit\n'
            f"echo {version} >> {tmp_path}/runs\n"
            f'OUT="$7"; for IN; do :; done\n{body}\n'
        )
        path.chmod(0o755)
        return path

    return install


def copy_report(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes() if source else b"NVIDIA Tegra Profiler Report 33681190.\nand so on")
    return target


def write_export(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")
        connection.execute("CREATE TABLE META_DATA_EXPORT (name TEXT)")
    return path


def count_kernels(path):
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]


def read_folder(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def list_runs(tmp_path):
    run_log = tmp_path / "runs"
    return run_log.read_text().split() if run_log.exists() else []


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def expect_refusal(report, kind=ToolError, **options):
    with pytest.raises(kind) as caught:
        get_export(report, **options)
    assert caught.value.hint
    return caught.value


def start_export(report):
    """Start an export in another process, which prints the path."""
    code = (
        f"import signal, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "from pathlib import Path; from nsys_insight.ingest.export import get_export\n"
        "print(get_export(Path(sys.argv[1])))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, report], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_nvtx_payloads_are_requested_from_an_nsys_that_has_them(report, stand_in, good_export, tmp_path):
    stand_in(f'echo "$8" >> {tmp_path}/flags; cp {good_export} "$OUT"', "2025.3.1")
    assert count_kernels(get_export(report)) == 0
    assert (tmp_path / "flags").read_text().split() == ["--include-blobs=true"]


def test_an_nsys_without_nvtx_payloads_exports_without_them(report, stand_in, good_export):
    unknown = "echo \"unrecognised option '$8'\"; exit 1"
    stand_in(f'case "$8" in --include-blobs*) {unknown};; esac; cp {good_export} "$OUT"', "2023.4.4")
    assert count_kernels(get_export(report)) == 0


class TestWithTheRealNsys:
    def test_the_export_is_complete_and_the_report_is_unchanged(self, real_report, cache):
        before, notes = read_folder(real_report.parent), []

        path = get_export(real_report, note=notes.append)

        assert count_kernels(path) == KERNELS
        assert read_folder(real_report.parent) == before
        assert list_files(cache) == [path, cache_entries.manifest_path(path)]
        assert notes == [f"exported {real_report} with nsys {nsys.find_newest_nsys().version}"]

    def test_progress_is_reported_in_rising_percents(self, real_report):
        percents = []
        get_export(real_report, progress=percents.append)
        assert percents == sorted(set(percents))
        assert percents[-1] == 100

    def test_a_report_of_any_name(self, real_report):
        odd = real_report.rename(real_report.with_name('it\'s 100% "odd"; $(x) #1 [é].nsys-rep'))
        assert count_kernels(get_export(odd)) == KERNELS

    def test_two_processes_at_once_both_get_the_export(self, real_report):
        with start_export(real_report) as first, start_export(real_report) as second:
            paths = [Path(process.communicate()[0].strip()) for process in (first, second)]
        assert [count_kernels(path) for path in paths] == [KERNELS, KERNELS]

    def test_a_report_cut_short_is_called_incomplete(self, real_report, cache):
        os.truncate(real_report, real_report.stat().st_size // 2)
        error = expect_refusal(real_report)
        assert f"cannot export {real_report}: " in error.message
        assert "looks incomplete" in error.hint
        assert list_files(cache) == []

    def test_a_report_of_a_newer_nsys_is_named_as_the_cause(self, installed_nsys, tmp_path, cache):
        later = ROOT.parent / "shared" / "traces" / "churn.25.nsys-rep"
        if not installed_nsys.version.startswith("2023.") or not later.exists():
            pytest.skip("needs nsys 2023 and a report of 2025")
        later = copy_report(later, tmp_path / "trace" / "later.nsys-rep")
        error = expect_refusal(later)
        assert error.message == (
            f"nsys {installed_nsys.version} cannot export {later}, which a newer nsys made: ProtobufParseException"
        )
        assert f"point $NSYS_INSIGHT_NSYS to a newer nsys than {installed_nsys.path}" in error.hint
        assert list_files(cache) == []


class TestTheCache:
    def test_nsys_does_not_run_a_second_time(self, report, stand_in, good_export, tmp_path):
        stand_in(f'cp {good_export} "$OUT"')
        assert get_export(report) == get_export(report, note=pytest.fail)
        assert len(list_runs(tmp_path)) == 1

    def test_a_changed_report_is_exported_again(self, report, stand_in, good_export, tmp_path):
        stand_in(f'cp {good_export} "$OUT"')
        first = get_export(report)
        report.write_bytes(report.read_bytes() + b"more")
        assert get_export(report) != first
        assert len(list_runs(tmp_path)) == 2

    @pytest.mark.parametrize("damage", [b"", b"SQLite format 3\0", bytes(10_000)])
    def test_a_damaged_entry_is_made_again(self, report, stand_in, good_export, damage):
        stand_in(f'cp {good_export} "$OUT"')
        get_export(report).write_bytes(damage)
        assert is_export(get_export(report))

    def test_a_newer_nsys_exports_again(self, report, stand_in, good_export, tmp_path):
        for version in ("2023.4", "2024.10", "2024.9"):
            stand_in(f'cp {good_export} "$OUT"', version)
            get_export(report)
        assert list_runs(tmp_path) == ["2023.4", "2024.10"]

    def test_a_cached_export_is_found_without_nsys(self, report, stand_in, good_export):
        tool = stand_in(f'cp {good_export} "$OUT"')
        before = get_export(report)
        tool.unlink()
        assert get_export(report) == before

    def test_without_a_writable_cache_the_export_is_for_one_command(self, report, stand_in, good_export, monkeypatch):
        stand_in(f'cp {good_export} "$OUT"')
        unusable_folder = good_export / "below"  # of a file
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(unusable_folder))
        notes = []
        export_path = get_export(report, note=notes.append)
        assert export_path.read_bytes()[:15] == b"SQLite format 3"
        assert export_path.parent == cache_folder.temporary_folder()
        assert str(unusable_folder) in notes[-1]
        assert "nsys-insight export" in notes[-1]
        assert "NSYS_INSIGHT_CACHE_DIR" in notes[-1]

    def test_a_cache_without_room_is_named(self, report, stand_in, good_export, tmp_path, monkeypatch):
        stand_in(f'cp {good_export} "$OUT"')

        def full(**_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(cache_folder, "folder", full)
        error = expect_refusal(report)
        assert "cannot be written to the cache" in error.message
        assert "NSYS_INSIGHT_CACHE_DIR" in error.hint
        assert list_runs(tmp_path) == []


class TestFailures:
    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            (f"echo {shlex.quote(BOOST)} >&2; head -c 28672 /dev/zero > $OUT; exit 1", "ProtobufParseException"),
            ("echo 'Exportation error: Unsupported version.' >&2; exit 1", "Unsupported version"),
            (f"echo {shlex.quote(BOOST)}; echo 'Exportation error: No such table.'; exit 1", "No such table"),
            ("echo 'nsys: error while loading shared libraries: libssh.so' >&2; exit 127", "libssh.so"),
            ("exit 3", "exit code 3 without output"),
            ("exit 0", "wrote no complete export"),
            ("printf 'SQLite format 3' > $OUT", "wrote no complete export"),
            ('cp GOOD "$OUT"; truncate -s 5000 "$OUT"', "wrote no complete export"),
            ('cp GOOD "$OUT"; exit 1', "exit code 1"),
            ('cp GOOD "$OUT"; kill -9 $$', "killed by signal 9"),
        ],
    )
    def test_a_failure_is_reported_in_one_line_and_leaves_nothing(
        self, report, cache, *, stand_in, good_export, body, reason
    ):
        stand_in(body.replace("GOOD", str(good_export)))
        error = expect_refusal(report)
        assert error.exit_code == Exit.TOOL
        assert error.message.startswith(f"nsys 2024.1.1 cannot export {report}: ")
        assert reason in error.message
        assert "\n" not in error.message
        assert "NSYS_INSIGHT_NSYS" in error.hint
        assert list_files(cache) == []

    def test_the_version_that_a_report_begins_with_is_named(self, report, stand_in):
        stand_in("exit 1", build="33681189")
        report.write_bytes(b"NVIDIA Tegra Profiler Report 2026@1@1@54-234433681190v0." + report.read_bytes())
        assert "which nsys 2026.1.1 made" in expect_refusal(report).message

    def test_a_newer_report_is_detected_by_its_build_number(self, report, stand_in):
        stand_in("exit 1", build="33681189")
        error = expect_refusal(report)
        assert "which a newer nsys made" in error.message
        assert "developer.nvidia.com/nsight-systems" in error.hint

    def test_an_nsys_that_cannot_be_started(self, report, stand_in):
        stand_in("").write_bytes(b"\x7fELF of another machine")
        assert "does not run" in expect_refusal(report).message

    def test_a_full_disk_is_reported_and_no_other_nsys_is_tried(self, report, cache, stand_in, tmp_path):
        for version in ("2023.4", "2024.1"):
            stand_in("echo 'Exportation error: database or disk is full'; exit 1", version)
        error = expect_refusal(report)
        assert str(cache) in error.message
        assert "No space left" in error.message
        assert "NSYS_INSIGHT_CACHE_DIR" in error.hint
        assert list_runs(tmp_path) == ["2024.1"]

    def test_another_nsys_is_tried_and_a_note_says_so(self, report, stand_in, good_export, tmp_path):
        stand_in(f'cp {good_export} "$OUT"', "2023.4")
        stand_in(f"echo {shlex.quote(BOOST)}; exit 1", "2024.1")
        notes = []
        assert is_export(get_export(report, note=notes.append))
        assert list_runs(tmp_path) == ["2024.1", "2023.4"]
        assert notes == [
            f"nsys 2024.1 cannot export {report}: ProtobufParseException; trying another",
            f"exported {report} with nsys 2023.4",
        ]

    def test_when_all_fail_the_reason_of_the_newest_is_given_and_all_are_named(self, report, stand_in):
        tools = [
            stand_in(f"echo 'Exportation error: {version} failed'; exit 1", version) for version in ("2024.1", "2023.4")
        ]
        error = expect_refusal(report)
        assert error.message == f"nsys 2024.1 cannot export {report}: 2024.1 failed"
        assert all(str(tool) in error.hint for tool in tools)

    def test_without_any_nsys_the_hint_says_how_to_export_elsewhere(self, report, stand_in):
        stand_in("").unlink()
        assert "nsys export --type sqlite" in expect_refusal(report).hint


class TestHowNsysIsRun:
    def test_changes_to_its_input_and_its_folder_do_no_harm(self, report, cache, stand_in, good_export):
        before = read_folder(report.parent)
        stand_in(f'echo junk >> "$IN"; touch "$IN.log" x "$TMPDIR/y" "$OUT-journal"; cp {good_export} "$OUT"')
        path = get_export(report)
        assert read_folder(report.parent) == before
        assert list_files(cache) == [path, cache_entries.manifest_path(path)]

    def test_it_waits_for_no_answer(self, report, stand_in, good_export):
        stand_in(f'read answer; cp {good_export} "$OUT"')
        assert is_export(get_export(report))

    def test_progress_arrives_while_nsys_works_and_each_percent_once(self, report, stand_in, good_export, tmp_path):
        progress_file = tmp_path / "progress"
        stand_in(
            r"printf '\rProcessing 9 events: [=5%%   ]\rProcessing 9 events: [=5%%   ]'; "
            r"printf '\rProcessing 9 events: [==50%% ]\r'; "
            f'while [ ! -e {progress_file} ]; do sleep 0.01; done; printf "[==100%%]"; cp {good_export} "$OUT"'
        )
        percents = []

        def progress(percent):
            percents.append(percent)
            progress_file.touch()  # nsys waits for this file: it would hang if progress came at its end

        get_export(report, progress=progress)
        assert percents == [5, 50, 100]

    @pytest.mark.parametrize(
        ("number", "remaining_files"), [(signal.SIGINT, 0), (signal.SIGTERM, 1), (signal.SIGKILL, 1)]
    )
    def test_an_interrupted_export_is_never_used(
        self, report, cache, stand_in, *, good_export, tmp_path, monkeypatch, number, remaining_files
    ):
        tool = stand_in(f'cp {good_export} "$OUT"; sleep 60 & echo $$ $! > pids; mv pids {tmp_path}; wait')
        monkeypatch.setenv("NSYS_INSIGHT_NSYS", str(tool))
        pid_file = tmp_path / "pids"
        with start_export(report) as process:
            while not pid_file.exists() and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(number)
            process.communicate()
        remaining_paths = list_files(cache)

        pids = [int(pid) for pid in pid_file.read_text().split()]
        if number == signal.SIGINT:
            # A signal is delivered when the process is scheduled.
            deadline = time.monotonic() + 5
            while any(map(is_alive, pids)) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not any(map(is_alive, pids))
        else:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        assert len(remaining_paths) == remaining_files
        assert not any(path.suffix == ".sqlite" for path in remaining_paths)

        # The next run exports the report and removes the leftovers.
        for path in remaining_paths:
            age(path, 120)
        tool.write_text(tool.read_text().replace("sleep 60", "true"))
        path = get_export(report)
        assert is_export(path)
        assert list_files(cache) == [path, cache_entries.manifest_path(path)]


def is_alive(pid):
    """Whether a process runs. An ended process may stay listed until its parent notices."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class TestTheExportNextToTheReport:
    @pytest.fixture(autouse=True)
    def uninstall_nsys(self, stand_in):
        stand_in("").unlink()

    def test_is_used_if_it_is_newer(self, report):
        neighbor = write_export(report.with_suffix(".sqlite"))
        notes = []
        assert get_export(report, note=notes.append) == neighbor
        assert notes == [f"using {neighbor}, an export newer than {report}"]

    def test_is_not_used_if_it_is_older_and_a_note_says_so(self, report):
        neighbor, notes = write_export(report.with_suffix(".sqlite")), []
        age(neighbor, 60)
        expect_refusal(report, note=notes.append)
        assert notes == [f"{neighbor} is older than {report} and not used; name it to use it"]

    def test_is_not_used_if_it_is_incomplete_and_a_note_says_so(self, report):
        neighbor, notes = write_export(report.with_suffix(".sqlite")), []
        os.truncate(neighbor, 5000)
        expect_refusal(report, note=notes.append)
        assert notes == [f"{neighbor} is not a complete nsys export and is not used"]

    def test_is_read_without_writing_next_to_it(self, report, cache):
        neighbor = write_export(report.with_suffix(".sqlite"))
        with closing(sqlite3.connect(neighbor)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        assert get_export(report).parent == cache

    def test_is_not_the_report_itself_under_a_wrong_name(self, report):
        wrong = report.rename(report.with_suffix(".sqlite"))
        assert "not found" in expect_refusal(wrong, note=pytest.fail).message


class TestTheExportCommand:
    @pytest.fixture(autouse=True)
    def work_in_empty_folder(self, tmp_path, monkeypatch, stand_in, good_export):
        folder = tmp_path / "somewhere"
        folder.mkdir()
        monkeypatch.chdir(folder)
        stand_in(f'cp {good_export} "$OUT"')

    def test_writes_to_the_current_folder_and_not_next_to_the_report(self, report, cache):
        assert export(report) == Path("run.sqlite")
        assert is_export(Path("run.sqlite"))
        assert list(Path().iterdir()) == [Path("run.sqlite")]
        assert list(report.parent.iterdir()) == [report]
        assert not cache.exists()

    def test_writes_to_the_given_path(self, report):
        Path("below").mkdir()
        assert export(report, Path("below/other.db")) == Path("below/other.db")
        assert export(report, Path("below")) == Path("below/run.sqlite")
        assert sorted(path.name for path in Path("below").iterdir()) == ["other.db", "run.sqlite"]

    def test_overwrites_only_when_forced(self, report):
        Path("run.sqlite").write_text("mine")
        with pytest.raises(UsageError, match=r"run\.sqlite exists already"):
            export(report)
        assert Path("run.sqlite").read_text() == "mine"
        export(report, force=True)
        assert is_export(Path("run.sqlite"))

    def test_never_overwrites_the_report(self, report):
        with pytest.raises(UsageError, match="is the report itself"):
            export(report, report, force=True)

    def test_leaves_an_existing_file_when_nsys_fails(self, report, stand_in):
        stand_in("exit 1")
        Path("run.sqlite").write_text("mine")
        with pytest.raises(ToolError):
            export(report, force=True)
        assert Path("run.sqlite").read_text() == "mine"
        assert list(Path().iterdir()) == [Path("run.sqlite")]

    def test_needs_a_report(self, good_export):
        with pytest.raises(UsageError, match="is an export already"):
            export(good_export)

    def test_needs_a_folder(self, report):
        with pytest.raises(UsageError, match="below is not a folder"):
            export(report, Path("below/run.sqlite"))

    def test_reports_that_a_folder_cannot_be_written_to(self, report, monkeypatch):
        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(cache_folder, "make_work_path", full)
        with pytest.raises(ToolError, match=r"run\.sqlite cannot be written: No space left"):
            export(report)
