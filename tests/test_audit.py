"""CI looks for known holes and reports if it cannot. Each ignored security check has a reason in its comment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AUDIT = ROOT / ".ci" / "audit"
# A comment that ignores one of ruff's security checks.
_IGNORED_CHECK = re.compile(r"# noqa: [^#]*\bS\d+(?:, ?[A-Z]+\d+)*(?P<reason>.*)")

needs_ci_script = pytest.mark.skipif(
    sys.platform == "win32" or not AUDIT.exists(), reason="CI is a shell script, and of a checkout"
)


@pytest.fixture
def audit(tmp_path):
    """Return a function that runs CI's script with a stand-in for pip-audit, which writes a report and exits."""

    def run(report, code=0, message="", *, is_release=False):
        tool = tmp_path / "pip-audit"
        report_file = tmp_path / "found.json"
        report_file.write_text(json.dumps(report) if report is not None else "")
        copy_command = f'cp {report_file} "$target"' if report is not None else ":"
        tool.write_text(
            '#!/bin/bash\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && target=$2; shift; done\n'
            f"{copy_command}\necho '{message}' >&2\nexit {code}\n"
        )
        tool.chmod(0o755)
        environment = os.environ | {"IS_RELEASE": str(is_release).lower()}
        return subprocess.run([AUDIT, tmp_path, tool], capture_output=True, text=True, check=False, env=environment)

    return run


def package(name, *holes):
    vulns = [{"id": hole, "fix_versions": ["9.9"], "aliases": [], "description": ""} for hole in holes]
    return {"name": name, "version": "1.0", "vulns": vulns}


@needs_ci_script
class TestTheAudit:
    def test_passes_without_a_known_hole(self, audit):
        result = audit({"dependencies": [package("duckdb"), {"name": "nsys-insight", "skip_reason": "not found"}]})
        assert (result.returncode, result.stdout) == (
            0, "audit: 1 packages, 0 known holes; not on PyPI: nsys-insight\n"
        )  # fmt: skip

    def test_fails_for_a_known_hole_and_names_it(self, audit):
        result = audit({"dependencies": [package("duckdb"), package("jinja2", "PYSEC-1")]}, code=1)
        assert result.returncode == 1
        assert "audit: jinja2 1.0 has PYSEC-1, mended in 9.9" in result.stdout

    def test_passes_and_reports_it_if_the_advisories_cannot_be_reached(self, audit):
        result = audit(None, code=1, message="ConnectionError: index.example")
        assert result.returncode == 0
        assert result.stdout == "audit: NOT DONE, the advisories cannot be reached: ConnectionError: index.example\n"

    @pytest.mark.parametrize("report", [None, {"dependencies": [{"name": "duckdb", "skip_reason": "not found"}]}])
    def test_fails_for_a_release_if_nothing_was_looked_at(self, audit, report):
        result = audit(report, is_release=True)
        assert (result.returncode, "NOT DONE" in result.stdout) == (1, True)
        assert audit(report).returncode == 0

    def test_passes_for_a_release_without_a_known_hole(self, audit):
        assert audit({"dependencies": [package("duckdb")]}, is_release=True).returncode == 0


@needs_ci_script
def test_the_audit_fails_if_its_tool_is_missing(tmp_path):
    result = subprocess.run([AUDIT, tmp_path, tmp_path / "none"], capture_output=True, text=True, check=False)
    assert (result.returncode, "there is no" in result.stdout) == (2, True)


def test_each_ignored_security_check_has_a_reason():
    for file in (ROOT / "nsys_insight").rglob("*.py"):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if (match := _IGNORED_CHECK.search(line)) and not re.match(r"S(IM|LF)", match[0].partition("noqa: ")[2]):
                assert re.search(r"\w{3,}", match["reason"]), f"{file}:{number}"


def test_only_one_security_check_is_off_for_the_package():
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("needs a checkout")
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL", "D401"]
    assert [rule for rule in lint["ignore"] if re.fullmatch(r"S\d*", rule)] == ["S608"]
    assert not [path for path in lint["per-file-ignores"] if path.startswith("nsys_insight")]
