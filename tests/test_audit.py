"""CI looks for known holes, and says so where it cannot; what a check of ours passes over has a reason beside it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AUDIT = ROOT / ".ci" / "audit"
# Checks of ruff for security, as they are named where one is passed over.
_PASSED_OVER = re.compile(r"# noqa: [^#]*\bS\d+(?:, ?[A-Z]+\d+)*(?P<reason>.*)")

of_ci = pytest.mark.skipif(
    sys.platform == "win32" or not AUDIT.exists(), reason="CI is a shell script, and of a checkout"
)


@pytest.fixture
def audit(tmp_path):
    """Run CI's script with a stand-in for pip-audit, which writes this and ends so."""

    def run(found, code=0, said=""):
        tool = tmp_path / "pip-audit"
        written = tmp_path / "found.json"
        written.write_text(json.dumps(found) if found is not None else "")
        copied = f'cp {written} "$target"' if found is not None else ":"
        tool.write_text(
            '#!/bin/bash\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && target=$2; shift; done\n'
            f"{copied}\necho '{said}' >&2\nexit {code}\n"
        )
        tool.chmod(0o755)
        return subprocess.run([AUDIT, tmp_path, tool], capture_output=True, text=True, check=False)

    return run


def package(name, *holes):
    vulns = [{"id": hole, "fix_versions": ["9.9"], "aliases": [], "description": ""} for hole in holes]
    return {"name": name, "version": "1.0", "vulns": vulns}


@of_ci
class TestTheAudit:
    def test_passes_where_nothing_is_known(self, audit):
        done = audit({"dependencies": [package("duckdb"), {"name": "nsys-insight", "skip_reason": "not found"}]})
        assert (done.returncode, done.stdout) == (
            0, "audit: 1 packages, 0 known holes; not on PyPI: nsys-insight\n"
        )  # fmt: skip

    def test_fails_for_a_known_hole_and_names_it(self, audit):
        done = audit({"dependencies": [package("duckdb"), package("jinja2", "PYSEC-1")]}, code=1)
        assert done.returncode == 1
        assert "audit: jinja2 1.0 has PYSEC-1, mended in 9.9" in done.stdout

    def test_passes_and_says_so_where_the_advisories_cannot_be_reached(self, audit):
        done = audit(None, code=1, said="ConnectionError: pypi.org")
        assert done.returncode == 0
        assert done.stdout == "audit: NOT DONE, the advisories cannot be reached: ConnectionError: pypi.org\n"


@of_ci
def test_the_audit_fails_where_its_tool_is_missing(tmp_path):
    done = subprocess.run([AUDIT, tmp_path, tmp_path / "none"], capture_output=True, text=True, check=False)
    assert (done.returncode, "there is no" in done.stdout) == (2, True)


@pytest.mark.parametrize("file", sorted((ROOT / "nsys_insight").rglob("*.py")), ids=lambda path: path.name)
def test_each_exception_to_a_check_for_security_has_a_reason(file):
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if (found := _PASSED_OVER.search(line)) and not re.match(r"S(IM|LF)", found[0].partition("noqa: ")[2]):
            assert re.search(r"\w{3,}", found["reason"]), f"{file}:{number}"


def test_checks_for_security_hold_for_what_is_shipped_but_for_one():
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("needs a checkout")
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL"]
    assert [rule for rule in lint["ignore"] if re.fullmatch(r"S\d*", rule)] == ["S608"]
    assert not [path for path in lint["per-file-ignores"] if path.startswith("nsys_insight")]
