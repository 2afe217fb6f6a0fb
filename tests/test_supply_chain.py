"""What CI installs and runs is named by its hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").glob("*.y*ml")), ROOT / "action.yml"]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
# Our own action, in the documents: its user replaces the owner, and chooses the version.
OWN_ACTION = "OWNER/nsys-insight@v0"

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs a checkout")


def read_requirements(file):
    """Return the requirements of a file with their hashes."""
    lines = re.sub(r"\\\n", " ", file.read_text(encoding="utf-8")).splitlines()
    entries = [line.split("--hash=") for line in lines if line.strip() and not line.startswith("#")]
    return [(Requirement(name.strip()), [text.strip() for text in hashes]) for name, *hashes in entries]


def find_uses(file):
    """Return what follows each `uses:`."""
    return re.findall(r"^[ -]*uses: *(.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("file", [*WORKFLOWS, *DOCUMENTS], ids=lambda file: str(file.relative_to(ROOT)))
def test_an_action_is_named_by_its_commit_with_the_version_in_a_comment(file):
    for use in find_uses(file):
        assert use == OWN_ACTION or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", use), use


def test_all_actions_of_the_workflows_are_found():
    def list_uses(node):
        if isinstance(node, dict):
            uses = [node["uses"]] if "uses" in node else []
            return [*uses, *(use for value in node.values() for use in list_uses(value))]
        return [use for item in node for use in list_uses(item)] if isinstance(node, list) else []

    for file in WORKFLOWS:
        uses = [use.split("#")[0].strip() for use in find_uses(file)]
        assert uses == list_uses(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert any(find_uses(file) for file in WORKFLOWS)


def test_one_action_has_one_commit():
    uses = {use for file in [*WORKFLOWS, *DOCUMENTS] for use in find_uses(file)}
    assert len(uses) == len({use.split("@")[0] for use in uses})


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: file.name)
def test_each_requirement_has_one_version_and_hashes(file):
    entries = read_requirements(file)
    assert entries
    for requirement, hashes in entries:
        assert [specifier.operator for specifier in requirement.specifier] == ["=="], requirement
        assert requirement.url is None
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", text) for text in hashes), requirement


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: file.name)
def test_no_index_is_named(file):
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"://|index|find-links|trusted-host|^-", text, re.MULTILINE)


def test_the_files_hold_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {file.stem: read_requirements(file) for file in REQUIREMENTS}
    texts_by_file = {
        "duckdb-2": ["duckdb>=2.0.1,<2.1"],
        "run": project["dependencies"],
        "dev": [*project["dependencies"], *project["optional-dependencies"]["dev"]],
        "test": ["hypothesis", "pytest", "pytest-xdist"],
    }
    assert pinned.keys() == texts_by_file.keys()
    for name, texts in texts_by_file.items():
        for text in texts:
            requirement = Requirement(text)
            versions = [next(iter(pin.specifier)).version for pin, _ in pinned[name] if pin.name == requirement.name]
            assert versions, f"{requirement.name} is not in requirements/{name}.txt: requirements/lock"
            assert all(requirement.specifier.contains(version) for version in versions), requirement
    dev_pins = {(pin.name, str(pin.specifier)) for pin, _ in pinned["dev"]}
    assert {(pin.name, str(pin.specifier)) for name in ("run", "test") for pin, _ in pinned[name]} <= dev_pins


def test_ci_installs_only_what_has_a_hash():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "known=(install -q --require-hashes --only-binary :all:)" in script
    lines = [*workflow.splitlines(), *script.splitlines()]
    # The commands of the README find what was installed before them.
    installs = [line for line in lines if re.search(r"\bpip .*(?:\binstall\b|known\[@\])", line)]
    assert len(installs) == 7
    for line in installs:
        assert re.search(r"--require-hashes|known\[@\]|--no-deps", line), line
    assert "export PIP_NO_BUILD_ISOLATION=0" in script
    assert "python -m build --wheel --no-isolation" in script
