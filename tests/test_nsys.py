"""Which nsys is used."""

from __future__ import annotations

import platform
import sys

import pytest

from nsys_insight.errors import Exit, ToolError
from nsys_insight.ingest import nsys

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for nsys are shell scripts")

TARGET_FOLDER = {"x86_64": "target-linux-x64", "aarch64": "target-linux-sbsa-armv8"}.get(platform.machine(), "bin")


@pytest.fixture(autouse=True)
def remove_installed_tools(tmp_path, monkeypatch):
    monkeypatch.delenv("NSYS_INSIGHT_NSYS", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setattr(
        nsys, "_INSTALL_FOLDERS", {sys.platform: (f"{tmp_path}/nsight-systems/*", f"{tmp_path}/nsight-compute/*/host")}
    )


def install(path, version=None):
    """Write a script named nsys that prints the version. Without a version, the script fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!/bin/sh\necho 'NVIDIA Nsight Systems version {version}'\n" if version else "#!/bin/sh\nexit 127\n"
    )
    path.chmod(0o755)
    return path


def list_tools():
    return [(tool.path, tool.version) for tool in nsys.find_installed()]


def catch_tool_error():
    with pytest.raises(ToolError) as caught:
        nsys.find_newest_nsys()
    assert caught.value.exit_code == Exit.TOOL
    assert caught.value.hint
    return caught.value


class TestWithoutTheVariable:
    def test_nsys_on_the_path_is_found(self, tmp_path):
        path = install(tmp_path / "path" / "nsys", "2023.4.4.54-234433681190v0")
        assert list_tools() == [(path, "2023.4.4.54")]

    def test_the_newest_version_comes_first_in_numeric_order(self, tmp_path):
        on_path = install(tmp_path / "path" / "nsys", "2024.2.1.1-24210000v0")
        tenth = install(tmp_path / "nsight-systems" / "2024.10.1" / TARGET_FOLDER / "nsys")
        oldest = install(tmp_path / "nsight-systems" / "2022.4" / TARGET_FOLDER / "nsys")
        in_compute = install(
            tmp_path / "nsight-compute" / "2025.9" / "host" / TARGET_FOLDER / "nsys", "2024.6.2.225-246235v0"
        )

        assert list_tools() == [
            (tenth, "2024.10.1"),
            (in_compute, "2024.6.2.225"),
            (on_path, "2024.2.1.1"),
            (oldest, "2022.4"),
        ]
        assert nsys.find_newest_nsys().path == tenth

    def test_nsys_that_does_not_run_is_skipped(self, tmp_path):
        install(tmp_path / "path" / "nsys", version=None)
        works = install(tmp_path / "nsight-systems" / "2022.4" / TARGET_FOLDER / "nsys")
        assert nsys.find_newest_nsys().path == works

    def test_nsys_for_another_architecture_is_skipped(self, tmp_path):
        install(tmp_path / "nsight-systems" / "2024.1" / "target-linux-other" / "nsys")
        assert list_tools() == []

    def test_the_executable_itself_is_preferred_to_the_script_that_starts_it(self, tmp_path):
        install(tmp_path / "nsight-systems" / "2024.1" / "bin" / "nsys")
        path = install(tmp_path / "nsight-systems" / "2024.1" / TARGET_FOLDER / "nsys")
        assert list_tools() == [(path, "2024.1")]

    def test_nsys_that_is_found_twice_is_listed_once(self, tmp_path):
        real = install(tmp_path / "nsight-systems" / "2024.1" / TARGET_FOLDER / "nsys")
        (tmp_path / "path").mkdir()
        (tmp_path / "path" / "nsys").symlink_to(real)
        assert len(list_tools()) == 1

    def test_without_nsys_the_error_lists_the_searched_folders_and_a_workaround(self, tmp_path):
        error = catch_tool_error()
        assert str(tmp_path / "nsight-systems") in error.message
        assert "nsys export --type sqlite -o trace.sqlite trace.nsys-rep" in error.hint
        assert "NSYS_INSIGHT_NSYS" in error.hint


class TestTheVariable:
    def test_it_names_an_executable_and_no_other_is_used(self, tmp_path, monkeypatch):
        install(tmp_path / "path" / "nsys", "2030.1.1.1-1v0")
        path = install(tmp_path / "mine" / "nsys-of-mine", "2023.1.1.1-1v0")
        monkeypatch.setenv("NSYS_INSIGHT_NSYS", str(path))
        assert list_tools() == [(path, "2023.1.1.1")]

    @pytest.mark.parametrize("relative_path", [f"{TARGET_FOLDER}/nsys", "bin/nsys", "nsys"])
    def test_it_names_an_install_folder(self, tmp_path, monkeypatch, relative_path):
        path = install(tmp_path / "mine" / relative_path, "2023.1.1.1-1v0")
        monkeypatch.setenv("NSYS_INSIGHT_NSYS", str(tmp_path / "mine"))
        assert list_tools() == [(path, "2023.1.1.1")]

    def test_a_wrong_value_is_an_error_even_if_nsys_is_installed(self, tmp_path, monkeypatch):
        install(tmp_path / "path" / "nsys", "2030.1.1.1-1v0")
        install(tmp_path / "mine" / "broken", version=None)
        (tmp_path / "mine" / "text").write_text("nsys")
        for value, expected_text in {
            "gone": "does not exist",
            "mine": "a folder without an nsys",
            "mine/broken": "does not run",
            "mine/text": "does not run",
        }.items():
            monkeypatch.setenv("NSYS_INSIGHT_NSYS", str(tmp_path / value))
            error = catch_tool_error()
            assert f"$NSYS_INSIGHT_NSYS is {tmp_path / value}" in error.message
            assert expected_text in error.message

    def test_it_may_begin_with_the_home_folder(self, tmp_path, monkeypatch):
        path = install(tmp_path / "tools" / "nsys", "2023.1.1.1-1v0")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NSYS_INSIGHT_NSYS", "~/tools")
        assert nsys.find_newest_nsys().path == path


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_every_system_has_install_folders(system, monkeypatch):
    monkeypatch.undo()
    assert nsys._INSTALL_FOLDERS[system]
