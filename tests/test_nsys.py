"""Which nsys is used."""

from __future__ import annotations

import platform
import sys

import pytest

from nsys_insight.errors import Exit, ToolError
from nsys_insight.ingest import nsys

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for nsys are shell scripts")

HERE = {"x86_64": "target-linux-x64", "aarch64": "target-linux-sbsa-armv8"}.get(platform.machine(), "bin")


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path, monkeypatch):
    monkeypatch.delenv("NSYS_INSIGHT_NSYS", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setattr(
        nsys, "_INSTALL_FOLDERS", {sys.platform: (f"{tmp_path}/nsight-systems/*", f"{tmp_path}/nsight-compute/*/host")}
    )


def install(path, prints=None):
    """Put a script that prints a version in place of nsys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!/bin/sh\necho 'NVIDIA Nsight Systems version {prints}'\n" if prints else "#!/bin/sh\nexit 127\n"
    )
    path.chmod(0o755)
    return path


def found():
    return [(tool.path, tool.version) for tool in nsys.installed()]


def refusal():
    with pytest.raises(ToolError) as caught:
        nsys.newest_nsys()
    assert caught.value.exit_code == Exit.TOOL
    assert caught.value.hint
    return caught.value


class TestWithoutTheVariable:
    def test_the_one_on_the_path(self, tmp_path):
        path = install(tmp_path / "path" / "nsys", "2023.4.4.54-234433681190v0")
        assert found() == [(path, "2023.4.4.54")]

    def test_the_newest_of_all_comes_first_by_number_and_not_by_letter(self, tmp_path):
        on_path = install(tmp_path / "path" / "nsys", "2024.2.1.1-24210000v0")
        tenth = install(tmp_path / "nsight-systems" / "2024.10.1" / HERE / "nsys")
        oldest = install(tmp_path / "nsight-systems" / "2022.4" / HERE / "nsys")
        in_compute = install(tmp_path / "nsight-compute" / "2025.9" / "host" / HERE / "nsys", "2024.6.2.225-246235v0")

        assert found() == [
            (tenth, "2024.10.1"),
            (in_compute, "2024.6.2.225"),
            (on_path, "2024.2.1.1"),
            (oldest, "2022.4"),
        ]
        assert nsys.newest_nsys().path == tenth

    def test_one_that_does_not_run_is_passed_over(self, tmp_path):
        install(tmp_path / "path" / "nsys", prints=None)
        works = install(tmp_path / "nsight-systems" / "2022.4" / HERE / "nsys")
        assert nsys.newest_nsys().path == works

    def test_one_of_another_machine_is_passed_over(self, tmp_path):
        install(tmp_path / "nsight-systems" / "2024.1" / "target-linux-other" / "nsys")
        assert found() == []

    def test_the_executable_itself_is_preferred_to_the_script_that_starts_it(self, tmp_path):
        install(tmp_path / "nsight-systems" / "2024.1" / "bin" / "nsys")
        path = install(tmp_path / "nsight-systems" / "2024.1" / HERE / "nsys")
        assert found() == [(path, "2024.1")]

    def test_one_that_is_found_twice_counts_once(self, tmp_path):
        real = install(tmp_path / "nsight-systems" / "2024.1" / HERE / "nsys")
        (tmp_path / "path").mkdir()
        (tmp_path / "path" / "nsys").symlink_to(real)
        assert len(found()) == 1

    def test_none_at_all_says_where_it_was_looked_for_and_how_to_go_on(self, tmp_path):
        error = refusal()
        assert str(tmp_path / "nsight-systems") in error.message
        assert "nsys export --type sqlite -o trace.sqlite trace.nsys-rep" in error.hint
        assert "NSYS_INSIGHT_NSYS" in error.hint


class TestTheVariable:
    def test_it_names_an_executable_which_is_then_the_only_one(self, tmp_path, monkeypatch):
        install(tmp_path / "path" / "nsys", "2030.1.1.1-1v0")
        path = install(tmp_path / "mine" / "nsys-of-mine", "2023.1.1.1-1v0")
        monkeypatch.setenv("NSYS_INSIGHT_NSYS", str(path))
        assert found() == [(path, "2023.1.1.1")]

    @pytest.mark.parametrize("below", [f"{HERE}/nsys", "bin/nsys", "nsys"])
    def test_it_names_an_install_folder(self, tmp_path, monkeypatch, below):
        path = install(tmp_path / "mine" / below, "2023.1.1.1-1v0")
        monkeypatch.setenv("NSYS_INSIGHT_NSYS", str(tmp_path / "mine"))
        assert found() == [(path, "2023.1.1.1")]

    def test_a_wrong_one_is_an_error_though_another_nsys_is_installed(self, tmp_path, monkeypatch):
        install(tmp_path / "path" / "nsys", "2030.1.1.1-1v0")
        install(tmp_path / "mine" / "broken", prints=None)
        (tmp_path / "mine" / "text").write_text("nsys")
        for value, said in {
            "gone": "does not exist",
            "mine": "a folder without an nsys",
            "mine/broken": "does not run",
            "mine/text": "does not run",
        }.items():
            monkeypatch.setenv("NSYS_INSIGHT_NSYS", str(tmp_path / value))
            error = refusal()
            assert f"$NSYS_INSIGHT_NSYS is {tmp_path / value}" in error.message
            assert said in error.message

    def test_it_may_begin_with_the_home_folder(self, tmp_path, monkeypatch):
        path = install(tmp_path / "tools" / "nsys", "2023.1.1.1-1v0")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NSYS_INSIGHT_NSYS", "~/tools")
        assert nsys.newest_nsys().path == path


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_every_system_has_usual_folders(system, monkeypatch):
    monkeypatch.undo()
    assert nsys._INSTALL_FOLDERS[system]
