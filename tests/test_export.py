"""From a report to its export: with the real nsys, and with stand-ins that fail in every way seen."""

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

from nsys_insight.errors import Exit, ToolError, UsageError
from nsys_insight.ingest import cache_entries, cache_folder, nsys
from nsys_insight.ingest.export import export, exported
from nsys_insight.ingest.identify import is_export

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for nsys are shell scripts")

ROOT = Path(__file__).parents[1]
REAL_REPORT = ROOT / "sample_traces" / "decode_eager.nsys-rep"
KERNELS = 6469  # of REAL_REPORT, as NVIDIA's own tool counts them
# What nsys 2023.4 prints when it meets a report of a later version.
BOOST = """\
[libprotobuf ERROR /build/message_lite.cc:133] Can't parse message of type "SessionState" because it is missing fields
Exportation error: /build/ProtobufUtils.cpp(73): Throw in function void QuadDProtobufUtils::ReadMessage(PbMessageLite&)
Dynamic exception type: boost::wrapexcept<QuadDCommon::ProtobufParseException>
std::exception::what: ProtobufParseException
"""


@pytest.fixture
def real_nsys():
    try:
        tool = nsys.newest_nsys()
    except ToolError as error:
        pytest.skip(error.message)
    if not REAL_REPORT.exists():
        pytest.skip(f"{REAL_REPORT} is missing")
    return tool


@pytest.fixture
def real_report(real_nsys, tmp_path):
    return copied(REAL_REPORT, tmp_path / "trace" / "run.nsys-rep")


@pytest.fixture
def report(tmp_path):
    return copied(None, tmp_path / "trace" / "run.nsys-rep")


@pytest.fixture
def good(tmp_path):
    """An export as a stand-in would write it."""
    return made_export(tmp_path / "good.sqlite")


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Make a script the only nsys; `$OUT` is where it is to write, `$IN` what it is to read."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("NSYS_INSIGHT_NSYS", raising=False)
    monkeypatch.setattr(nsys, "_INSTALL_FOLDERS", {sys.platform: (f"{tmp_path}/nsight-systems/*",)})

    def install(does, version="2024.1.1", build="33681190"):
        path = tmp_path / "nsight-systems" / version / "bin" / "nsys"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"#!/bin/sh\n"
            f'[ "$1" = --version ] && echo "NVIDIA Nsight Systems version {version}-2411{build}v0" && exit\n'
            f"echo {version} >> {tmp_path}/ran\n"
            f'OUT="$7"; for IN; do :; done\n{does}\n'
        )
        path.chmod(0o755)
        return path

    return install


def copied(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes() if source else b"NVIDIA Tegra Profiler Report 33681190.\nand so on")
    return target


def made_export(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")
        connection.execute("CREATE TABLE META_DATA_EXPORT (name TEXT)")
    return path


def kernels(path):
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]


def content(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def runs(tmp_path):
    ran = tmp_path / "ran"
    return ran.read_text().split() if ran.exists() else []


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def refusal(report, kind=ToolError, **options):
    with pytest.raises(kind) as caught:
        exported(report, **options)
    assert caught.value.hint
    return caught.value


def spawned(report):
    """Export in a process of its own; it prints the path."""
    code = (
        f"import signal, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "from pathlib import Path; from nsys_insight.ingest.export import exported; print(exported(Path(sys.argv[1])))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, report], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_payloads_of_nvtx_are_asked_for_of_an_nsys_that_has_them(report, stand_in, good, tmp_path):
    stand_in(f'echo "$8" >> {tmp_path}/asked; cp {good} "$OUT"', "2025.3.1")
    assert kernels(exported(report)) == 0
    assert (tmp_path / "asked").read_text().split() == ["--include-blobs=true"]


def test_an_nsys_that_knows_no_payloads_exports_without(report, stand_in, good):
    unknown = "echo \"unrecognised option '$8'\"; exit 1"
    stand_in(f'case "$8" in --include-blobs*) {unknown};; esac; cp {good} "$OUT"', "2023.4.4")
    assert kernels(exported(report)) == 0


class TestWithTheRealNsys:
    def test_the_export_holds_what_was_captured_and_the_report_is_as_it_was(self, real_report, cache):
        before, notes = content(real_report.parent), []

        path = exported(real_report, note=notes.append)

        assert kernels(path) == KERNELS
        assert content(real_report.parent) == before
        assert sorted(cache.iterdir()) == [path, cache_entries.beside(path)]
        assert notes == [f"exported {real_report} with nsys {nsys.newest_nsys().version}"]

    def test_progress_is_told_in_rising_percents(self, real_report):
        percents = []
        exported(real_report, progress=percents.append)
        assert percents == sorted(set(percents))
        assert percents[-1] == 100

    def test_a_report_of_any_name(self, real_report):
        odd = real_report.rename(real_report.with_name('it\'s 100% "odd"; $(x) #1 [é].nsys-rep'))
        assert kernels(exported(odd)) == KERNELS

    def test_two_processes_at_once_both_get_it(self, real_report):
        with spawned(real_report) as one, spawned(real_report) as other:
            paths = [Path(process.communicate()[0].strip()) for process in (one, other)]
        assert [kernels(path) for path in paths] == [KERNELS, KERNELS]

    def test_a_report_cut_short_is_called_incomplete(self, real_report, cache):
        os.truncate(real_report, real_report.stat().st_size // 2)
        error = refusal(real_report)
        assert f"cannot export {real_report}: " in error.message
        assert "looks incomplete" in error.hint
        assert list(cache.iterdir()) == []

    def test_a_report_of_a_later_nsys_is_called_that(self, real_nsys, tmp_path, cache):
        later = ROOT.parent / "shared" / "traces" / "churn.25.nsys-rep"
        if not real_nsys.version.startswith("2023.") or not later.exists():
            pytest.skip("needs nsys 2023 and a report of 2025")
        later = copied(later, tmp_path / "trace" / "later.nsys-rep")
        error = refusal(later)
        assert error.message == (
            f"nsys {real_nsys.version} cannot export {later}, which a newer nsys made: ProtobufParseException"
        )
        assert f"point $NSYS_INSIGHT_NSYS to a newer nsys than {real_nsys.path}" in error.hint
        assert list(cache.iterdir()) == []


class TestTheCache:
    def test_the_second_time_nsys_is_not_run(self, report, stand_in, good, tmp_path):
        stand_in(f'cp {good} "$OUT"')
        assert exported(report) == exported(report, note=pytest.fail)
        assert len(runs(tmp_path)) == 1

    def test_a_report_made_anew_is_exported_anew(self, report, stand_in, good, tmp_path):
        stand_in(f'cp {good} "$OUT"')
        first = exported(report)
        report.write_bytes(report.read_bytes() + b"more")
        assert exported(report) != first
        assert len(runs(tmp_path)) == 2

    @pytest.mark.parametrize("damage", [b"", b"SQLite format 3\0", bytes(10_000)])
    def test_a_damaged_entry_is_made_again(self, report, stand_in, good, damage):
        stand_in(f'cp {good} "$OUT"')
        exported(report).write_bytes(damage)
        assert is_export(exported(report))

    def test_a_newer_nsys_exports_again(self, report, stand_in, good, tmp_path):
        for version in ("2023.4", "2024.10", "2024.9"):
            stand_in(f'cp {good} "$OUT"', version)
            exported(report)
        assert runs(tmp_path) == ["2023.4", "2024.10"]

    def test_what_was_exported_once_is_found_when_nsys_is_gone(self, report, stand_in, good):
        tool = stand_in(f'cp {good} "$OUT"')
        before = exported(report)
        tool.unlink()
        assert exported(report) == before

    def test_where_the_cache_cannot_be_written_the_export_is_for_one_command(self, report, stand_in, good, monkeypatch):
        stand_in(f'cp {good} "$OUT"')
        nowhere = good / "below"  # of a file
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(nowhere))
        notes = []
        made = exported(report, note=notes.append)
        assert made.read_bytes()[:15] == b"SQLite format 3"
        assert made.parent == cache_folder.temporary()
        assert str(nowhere) in notes[-1]
        assert "nsys-insight export" in notes[-1]
        assert "NSYS_INSIGHT_CACHE_DIR" in notes[-1]

    def test_a_cache_without_room_is_named(self, report, stand_in, good, tmp_path, monkeypatch):
        stand_in(f'cp {good} "$OUT"')

        def full(**_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(cache_folder, "folder", full)
        error = refusal(report)
        assert "cannot be written to the cache" in error.message
        assert "NSYS_INSIGHT_CACHE_DIR" in error.hint
        assert runs(tmp_path) == []


class TestFailures:
    @pytest.mark.parametrize(
        ("does", "said"),
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
    def test_each_is_told_in_one_line_and_leaves_nothing(self, report, cache, *, stand_in, good, does, said):
        stand_in(does.replace("GOOD", str(good)))
        error = refusal(report)
        assert error.exit_code == Exit.TOOL
        assert error.message.startswith(f"nsys 2024.1.1 cannot export {report}: ")
        assert said in error.message
        assert "\n" not in error.message
        assert "NSYS_INSIGHT_NSYS" in error.hint
        assert list(cache.iterdir()) == []

    def test_a_newer_report_is_called_that_by_its_build_number(self, report, stand_in):
        stand_in("exit 1", build="33681189")
        assert "which a newer nsys made" in refusal(report).message

    def test_an_nsys_that_cannot_be_started(self, report, stand_in):
        stand_in("").write_bytes(b"\x7fELF of another machine")
        assert "does not run" in refusal(report).message

    def test_a_full_disk_is_told_as_one_and_no_other_nsys_tried(self, report, cache, stand_in, tmp_path):
        for version in ("2023.4", "2024.1"):
            stand_in("echo 'Exportation error: database or disk is full'; exit 1", version)
        error = refusal(report)
        assert str(cache) in error.message
        assert "No space left" in error.message
        assert "NSYS_INSIGHT_CACHE_DIR" in error.hint
        assert runs(tmp_path) == ["2024.1"]

    def test_another_nsys_is_tried_and_a_note_says_so(self, report, stand_in, good, tmp_path):
        stand_in(f'cp {good} "$OUT"', "2023.4")
        stand_in(f"echo {shlex.quote(BOOST)}; exit 1", "2024.1")
        notes = []
        assert is_export(exported(report, note=notes.append))
        assert runs(tmp_path) == ["2024.1", "2023.4"]
        assert notes == [
            f"nsys 2024.1 cannot export {report}: ProtobufParseException; trying another",
            f"exported {report} with nsys 2023.4",
        ]

    def test_when_all_fail_the_newest_s_reason_counts_and_all_are_named(self, report, stand_in):
        tools = [
            stand_in(f"echo 'Exportation error: {version} failed'; exit 1", version) for version in ("2024.1", "2023.4")
        ]
        error = refusal(report)
        assert error.message == f"nsys 2024.1 cannot export {report}: 2024.1 failed"
        assert all(str(tool) in error.hint for tool in tools)

    def test_without_any_nsys_the_hint_says_how_to_export_elsewhere(self, report, stand_in):
        stand_in("").unlink()
        assert "nsys export --type sqlite" in refusal(report).hint


class TestHowNsysIsRun:
    def test_it_may_do_what_it_likes_to_its_input_and_its_folder(self, report, cache, stand_in, good):
        before = content(report.parent)
        stand_in(f'echo junk >> "$IN"; touch "$IN.log" x "$TMPDIR/y" "$OUT-journal"; cp {good} "$OUT"')
        path = exported(report)
        assert content(report.parent) == before
        assert sorted(cache.iterdir()) == [path, cache_entries.beside(path)]

    def test_it_waits_for_no_answer(self, report, stand_in, good):
        stand_in(f'read answer; cp {good} "$OUT"')
        assert is_export(exported(report))

    def test_progress_arrives_while_it_works_and_each_percent_once(self, report, stand_in, good, tmp_path):
        seen = tmp_path / "seen"
        stand_in(
            r"printf '\rProcessing 9 events: [=5%%   ]\rProcessing 9 events: [=5%%   ]'; "
            r"printf '\rProcessing 9 events: [==50%% ]\r'; "
            f'while [ ! -e {seen} ]; do sleep 0.01; done; printf "[==100%%]"; cp {good} "$OUT"'
        )
        percents = []

        def progress(percent):
            percents.append(percent)
            seen.touch()  # it would hang if it had to end first

        exported(report, progress=progress)
        assert percents == [5, 50, 100]

    @pytest.mark.parametrize(("number", "leaves"), [(signal.SIGINT, 0), (signal.SIGTERM, 1), (signal.SIGKILL, 1)])
    def test_an_interrupted_export_is_never_taken_for_good(
        self, report, cache, stand_in, *, good, tmp_path, monkeypatch, number, leaves
    ):
        tool = stand_in(f'cp {good} "$OUT"; sleep 60 & echo $$ $! > pids; mv pids {tmp_path}; wait')
        monkeypatch.setenv("NSYS_INSIGHT_NSYS", str(tool))
        started = tmp_path / "pids"
        with spawned(report) as process:
            while not started.exists() and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(number)
            process.communicate()
        left = list(cache.iterdir())

        pids = [int(pid) for pid in started.read_text().split()]
        if number == signal.SIGINT:
            assert not any(is_alive(pid) for pid in pids)
        else:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        assert len(left) == leaves
        assert not any(path.suffix == ".sqlite" for path in left)

        # The next run gets it right, and clears up.
        for path in left:
            age(path, 120)
        tool.write_text(tool.read_text().replace("sleep 60", "true"))
        path = exported(report)
        assert is_export(path)
        assert sorted(cache.iterdir()) == [path, cache_entries.beside(path)]


def is_alive(pid):
    """Whether a process runs; one that ended may stay listed until its parent notices."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class TestTheExportBesideTheReport:
    @pytest.fixture(autouse=True)
    def no_nsys(self, stand_in):
        stand_in("").unlink()

    def test_is_used_if_it_is_newer(self, report):
        beside = made_export(report.with_suffix(".sqlite"))
        notes = []
        assert exported(report, note=notes.append) == beside
        assert notes == [f"using {beside}, an export newer than {report}"]

    def test_is_not_used_if_it_is_older_and_a_note_says_so(self, report):
        beside, notes = made_export(report.with_suffix(".sqlite")), []
        age(beside, 60)
        refusal(report, note=notes.append)
        assert notes == [f"{beside} is older than {report} and not used; name it to use it"]

    def test_is_not_used_if_it_is_no_whole_export_and_a_note_says_so(self, report):
        beside, notes = made_export(report.with_suffix(".sqlite")), []
        os.truncate(beside, 5000)
        refusal(report, note=notes.append)
        assert notes == [f"{beside} is not a complete nsys export and is not used"]

    def test_is_read_without_writing_beside_it(self, report, cache):
        beside = made_export(report.with_suffix(".sqlite"))
        with closing(sqlite3.connect(beside)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        assert exported(report).parent == cache

    def test_is_not_the_report_itself_under_a_wrong_name(self, report):
        wrong = report.rename(report.with_suffix(".sqlite"))
        assert "not installed" in refusal(wrong, note=pytest.fail).message


class TestTheExportCommand:
    @pytest.fixture(autouse=True)
    def somewhere(self, tmp_path, monkeypatch, stand_in, good):
        folder = tmp_path / "somewhere"
        folder.mkdir()
        monkeypatch.chdir(folder)
        stand_in(f'cp {good} "$OUT"')

    def test_writes_to_the_current_folder_and_not_beside_the_report(self, report, cache):
        assert export(report) == Path("run.sqlite")
        assert is_export(Path("run.sqlite"))
        assert list(Path().iterdir()) == [Path("run.sqlite")]
        assert list(report.parent.iterdir()) == [report]
        assert not cache.exists()

    def test_writes_where_it_is_told(self, report):
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

    def test_leaves_what_was_there_when_nsys_fails(self, report, stand_in):
        stand_in("exit 1")
        Path("run.sqlite").write_text("mine")
        with pytest.raises(ToolError):
            export(report, force=True)
        assert Path("run.sqlite").read_text() == "mine"
        assert list(Path().iterdir()) == [Path("run.sqlite")]

    def test_needs_a_report(self, good):
        with pytest.raises(UsageError, match="is an export already"):
            export(good)

    def test_needs_a_folder(self, report):
        with pytest.raises(UsageError, match="below is not a folder"):
            export(report, Path("below/run.sqlite"))

    def test_tells_that_a_folder_cannot_be_written_to(self, report, monkeypatch):
        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(cache_folder, "working", full)
        with pytest.raises(ToolError, match=r"run\.sqlite cannot be written: No space left"):
            export(report)
