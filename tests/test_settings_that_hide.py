"""Settings that hide findings: where they are read from, and how each answer names them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import planted
import pytest
import rank_traces
from command_line import run as run_cli
from jsonschema import validate
from opening import only_rules

from nsys_insight.cli.json_schema import get_schema
from nsys_insight.diagnose.rule_choice import RuleChoice, read_project_choice

SETTINGS = '[diagnose]\nignore = ["d2h-sync"]\n'
HIDDEN = "NSI201"

unix_only = pytest.mark.skipif(sys.platform == "win32", reason="owners are those of Unix")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Write a trace with one planted ailment: a synchronization in each step."""
    return planted.sync_bound(steps=8).write(tmp_path_factory.mktemp("trace") / "trace.sqlite")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Work in a folder of a repository whose settings hide the ailment."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "nsys-insight.toml").write_text(SETTINGS)
    folder = tmp_path / "project" / "runs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return tmp_path / "project"


def diagnose(trace, *flags):
    result = run_cli("diagnose", trace, *flags, env={"COLUMNS": "400"})
    assert result.returncode == 0, result.stderr
    return result


class TestAnswers:
    def test_without_settings_the_ailment_is_found(self, trace, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        answer = json.loads(diagnose(trace, "--format", "json").stdout)
        assert HIDDEN in {row["code"] for row in answer["rows"]}
        assert "left_out" not in answer["summary"]
        assert answer["notes"] == []

    @pytest.mark.parametrize("fmt", ["table", "markdown"])
    def test_people_read_which_file_hides_what(self, trace, project, fmt):
        text = " ".join(diagnose(trace, "--format", fmt).stdout.replace("\\", "").split())
        assert f"The settings in {project / 'nsys-insight.toml'} leave out d2h-sync: 1 rule is off" in text
        assert f"1 finding is hidden: {HIDDEN} " in text

    def test_json_has_the_file_and_what_it_hides(self, trace, project):
        answer = json.loads(diagnose(trace, "--format", "json").stdout)
        validate(answer, get_schema("diagnose"))
        left_out = answer["summary"]["left_out"]
        assert left_out["file"] == str(project / "nsys-insight.toml")
        assert (left_out["select"], left_out["ignore"], left_out["rules"]) == ([], ["d2h-sync"], [HIDDEN])
        (finding,) = left_out["findings"]
        assert (finding["code"], finding["severity"]) == (HIDDEN, "critical")
        assert HIDDEN not in {row["code"] for row in answer["rows"]}
        assert str(project / "nsys-insight.toml") in answer["notes"][0]

    @pytest.mark.slow
    def test_of_a_run_of_ranks_the_late_one_is_hidden_and_named(self, project, tmp_path):
        run = rank_traces.Run(2, steps=15)
        run.python[1] = dict.fromkeys(range(2, 15, 5), 12_000_000)
        paths = run.write(tmp_path)
        (project / "nsys-insight.toml").write_text('[diagnose]\nignore = ["NSI5"]\n')
        answers = [
            json.loads(run_cli("diagnose", *paths, *flags, "--format", "json").stdout)
            for flags in ([], ["--select", "NSI"])
        ]
        late = {row["code"] for row in answers[1]["rows"] if row["code"].startswith("NSI5")}
        assert late
        assert late <= {finding["code"] for finding in answers[0]["summary"]["left_out"]["findings"]}
        assert not late & {row["code"] for row in answers[0]["rows"]}

    @pytest.mark.usefixtures("project")
    def test_other_formats_have_a_note(self, trace):
        assert f"1 finding is hidden: {HIDDEN}" in diagnose(trace, "--format", "csv").stderr

    def test_a_run_with_hidden_findings_is_not_called_healthy(self, trace, project):
        (project / "nsys-insight.toml").write_text('[diagnose]\nignore = ["NSI"]\n')
        result = diagnose(trace)
        assert "No single cause" not in result.stdout
        assert "Healthy" not in result.stdout
        assert "None of the rules in use finds a cause" in result.stdout

    def test_settings_that_hide_nothing_are_named_too(self, trace, project):
        (project / "nsys-insight.toml").write_text('[diagnose]\nignore = ["NSI5"]\n')
        assert "They find nothing of 1% or more." in " ".join(diagnose(trace).stdout.split())
        (project / "nsys-insight.toml").write_text("[diagnose]\n")
        assert "leave out no rule" in " ".join(diagnose(trace).stdout.split())

    @pytest.mark.usefixtures("project")
    def test_flags_replace_the_file_and_are_named(self, trace):
        answer = json.loads(diagnose(trace, "--select", "NSI", "--format", "json").stdout)
        assert HIDDEN in {row["code"] for row in answer["rows"]}
        assert answer["summary"]["left_out"]["rules"] == []
        text = diagnose(trace, "--ignore", HIDDEN).stdout
        assert f"The flags leave out {HIDDEN}: 1 rule is off, and not evaluated." in text

    @pytest.mark.usefixtures("project")
    def test_check_and_report_do_not_obey_the_file(self, trace):
        assert run_cli("check", trace, "--fail-on", HIDDEN).returncode == 1
        for name in ("page.md", "page.html"):
            with only_rules(HIDDEN):
                assert run_cli("report", trace, "-o", name).returncode == 0
            page = Path(name).read_text(encoding="utf-8")
            assert HIDDEN in page
            assert "nsys-insight.toml" not in page


class TestSearch:
    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "nsys-insight.toml").write_text(SETTINGS)
        return folder / "nsys-insight.toml"

    def test_it_ends_at_the_root_of_the_repository(self, tmp_path):
        self.write(tmp_path)
        inner = tmp_path / "repository" / "runs"
        inner.mkdir(parents=True)
        (tmp_path / "repository" / ".git").write_text("gitdir: elsewhere\n")
        assert read_project_choice(inner) == RuleChoice()
        file = self.write(tmp_path / "repository")
        assert read_project_choice(inner).file == file

    def test_it_ends_at_the_home_folder(self, tmp_path, monkeypatch):
        self.write(tmp_path)
        (tmp_path / ".git").mkdir()
        home = tmp_path / "home"
        inner = home / "runs"
        inner.mkdir(parents=True)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("USERPROFILE", str(home))
        assert read_project_choice(inner) == RuleChoice()
        file = self.write(home)
        assert read_project_choice(inner).file == file

    def test_outside_of_both_only_the_working_folder_counts(self, tmp_path):
        self.write(tmp_path)
        inner = tmp_path / "runs"
        inner.mkdir()
        assert read_project_choice(inner) == RuleChoice()
        file = self.write(inner)
        assert read_project_choice(inner).file == file

    @unix_only
    @as_root
    @pytest.mark.parametrize("form", ["file", "link", "target of a link"])
    def test_a_file_of_another_user_is_not_read_and_a_note_says_so(self, trace, project, tmp_path, form):
        file = foreign = project / "nsys-insight.toml"
        if form != "file":
            target = file.rename(tmp_path / "target.toml")
            file.symlink_to(target)
            foreign = file if form == "link" else target
        os.chown(foreign, 12345, 12345, follow_symlinks=False)
        answer = json.loads(diagnose(trace, "--format", "json").stdout)
        assert HIDDEN in {row["code"] for row in answer["rows"]}
        assert "left_out" not in answer["summary"]
        note = f"{file} belongs to another user and is not read"
        assert note in answer["notes"][0]
        assert note in diagnose(trace).stderr

    @unix_only
    @as_root
    def test_below_a_file_of_another_user_ones_own_counts(self, project):
        os.chown(project / "nsys-insight.toml", 12345, 12345)
        file = self.write(project / "runs")
        assert read_project_choice().file == file
        file.rename(project / "own.toml").rename(project / "nsys-insight.toml")
        os.chown(project / "nsys-insight.toml", 0, 0)
        self.write(project / "runs")
        os.chown(file, 12345, 12345)
        choice = read_project_choice()
        assert (choice.file, len(choice.notes)) == (project / "nsys-insight.toml", 1)


class TestBaselines:
    def test_a_check_names_the_file_of_its_baseline_and_what_it_hides(self, trace, project, tmp_path, monkeypatch):
        monkeypatch.setenv("NSYS_INSIGHT_BASELINE_DIR", str(tmp_path / "mine"))
        for flags in ([], ["--user"]):
            assert run_cli("baseline", "save", trace, "--name", "main", *flags).returncode == 0
        own_file, hidden_file = project / ".nsys-insight" / "baselines" / "main.json", tmp_path / "mine" / "main.json"
        note = f"the baseline main is the file {own_file}; it hides {hidden_file}"
        result = run_cli("check", trace, "--baseline", "main", "--format", "json")
        assert note in json.loads(result.stdout)["notes"]
        assert note in run_cli("diff", "main", trace).stderr
        if sys.platform != "win32" and os.geteuid() == 0:
            os.chown(own_file, 12345, 12345)
            assert f"{own_file}, which belongs to another user" in run_cli("check", trace, "--baseline", "main").stderr

    @pytest.mark.usefixtures("project")
    def test_a_repository_around_the_home_folder_has_no_baselines(self, trace, tmp_path, monkeypatch):
        monkeypatch.setenv("NSYS_INSIGHT_BASELINE_DIR", str(tmp_path / "mine"))
        assert run_cli("baseline", "save", trace, "--name", "main").returncode == 0
        monkeypatch.setenv("HOME", str(Path.cwd()))
        monkeypatch.setenv("USERPROFILE", str(Path.cwd()))
        assert run_cli("check", trace, "--baseline", "main").returncode == 2
