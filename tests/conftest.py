"""Fixtures of all tests: the traces, and isolation from the user's settings and cache."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys
import tempfile
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from kept_connections import begin_test
from opening import diagnose_with, evaluate_rules, open_trace, unpack
from rule_tables import RULES, open_rules
from sweeps import selection

from nsys_insight.cli import ending
from nsys_insight.diagnose.findings import ANY, choose_cure
from nsys_insight.model import template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_insight.diagnose.diagnosis import Diagnosis
    from nsys_insight.diagnose.findings import Finding
    from nsys_insight.facts.context import FactOptions

# Without bytecode, each worker of each run would rewrite the assertions of all test modules.
sys.dont_write_bytecode = False
# DuckDB imports pandas for each text in each table of numpy arrays that it reads. A search that fails takes time.
if importlib.util.find_spec("pandas") is None:
    sys.modules["pandas"] = None  # type: ignore[assignment]
REPOSITORY = Path(__file__).parents[1]
_NUMBERS = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags that write goldens and that run all tests."""
    parser.addoption("--golden", action="store_true", help="write the goldens that changed instead of comparing")
    parser.addoption("--all", action="store_true", help="run the slow tests and the sweeps as well")


def pytest_configure(config: pytest.Config) -> None:
    """Let tests start the tool as users do.

    Tests send Ctrl-C to it; a background job of a shell ignores the signal, so the default handler is set again. Each
    start takes longer without bytecode. Examples of hypothesis have no deadline, because their times depend on the
    machine. By default there are few examples.
    """
    settings.register_profile("any machine", deadline=None, max_examples=100 if config.getoption("--all") else 15)
    settings.load_profile("any machine")
    config.addinivalue_line("markers", "sweep: one more of a kind that the other tests have one of; run by --all")
    config.addinivalue_line("markers", "slow: takes half a second or more of CPU time; run by --all")
    config.addinivalue_line("markers", "wheel: what needs the files that a wheel carries; CI runs these on the wheel")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    selection.has_sweeps = _takes_all(config)
    # Before the workers start, which use it.
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        _update_template()


def _takes_all(config: pytest.Config) -> bool:
    return config.getoption("--all") or any("::" in argument for argument in config.args)


def _update_template() -> None:
    """Write the template of the model again if its source files changed since the installation.

    Otherwise, each process that a test starts would build the model, which takes longer than most commands.
    """
    if template._is_packaged_current():
        return
    file, manifest = (template.package_folder() / name for name in (template.PACKAGED_FILE, template.PACKAGED_MANIFEST))
    with suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            template.write_template(Path(folder) / file.name)
            (Path(folder) / file.name).replace(file)
        manifest.write_text(template.describe_package(has_times=True), encoding="utf-8")
        template._is_packaged_current.cache_clear()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the sweeps and the slow tests, unless `--all` is given or a test is named on the command line."""
    if _takes_all(config):
        return
    selected: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (left_out if any(map(item.get_closest_marker, ("sweep", "slow"))) else selected).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = selected


def pytest_collection_finish() -> None:
    """Let garbage collections skip the modules and tests: a full one takes longer than most tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Use several processes only for folders: starting them takes longer than running one file or test."""
    if all(Path(argument).is_dir() for argument in config.args):
        return None
    config.option.dist = "no"
    return 0


@pytest.fixture(scope="session", autouse=True)
def isolate_user_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Unset the user's settings, and set a cache folder for fixtures that live longer than a test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            # These two select the programs to test with.
            if name.startswith("NSYS_INSIGHT_") and name not in ("NSYS_INSIGHT_COMMAND", "NSYS_INSIGHT_NSYS"):
                patch.delenv(name)
        patch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def restore_signals() -> Iterator[None]:
    """Restore the signal handlers that the command line changes when a test runs it in this process.

    When the command ends, it ignores Ctrl-C. Its signal watch would end the process at a signal of another test.
    """
    handlers = {signal_number: signal.getsignal(signal_number) for signal_number in (signal.SIGINT, signal.SIGTERM)}
    yield
    signal.set_wakeup_fd(-1)
    ending._exit_codes.clear()
    ending._received_codes.clear()
    for signal_number, handler in handlers.items():
        signal.signal(signal_number, handler)


@pytest.fixture(autouse=True, name="cache")
def cache_folder(all_caches: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> Path:
    """Return a new cache folder for each test. The folder is created at the first use."""
    if not pytestconfig.getoption("--all"):
        begin_test()
    folder = all_caches / str(next(_NUMBERS))
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def all_caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the cache folders of all tests."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(scope="session")
def sample() -> Callable[[str], Path]:
    """Return a function that gives the path of a sample trace by its name, such as decode_eager."""
    return lambda name: REPOSITORY / "sample_traces" / f"{name}.sqlite"


@pytest.fixture(scope="session")
def capture() -> Callable[[str], Path]:
    """Return a function that unpacks a capture of tests/data/odd."""
    return lambda name: unpack(REPOSITORY / "tests" / "data" / "odd" / f"{name}.sqlite.xz")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of further traces next to the checkout; skip the test if it is missing."""
    folder = REPOSITORY.parent / "shared"
    if not (folder / "traces").is_dir():
        pytest.skip("needs the traces in ../shared")
    return folder


@pytest.fixture(scope="module")
def findings_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Callable[[], Any]], dict[str, Finding]]:
    """Return a function that evaluates the `RULES` of the test's module on a program of `ailments`, once."""
    findings: dict[Any, dict[str, Finding]] = {}

    def evaluate_once(make: Callable[[], Any]) -> dict[str, Finding]:
        key = (make.func, make.args, *sorted(make.keywords.items())) if isinstance(make, partial) else make
        if key not in findings:
            with open_trace(make().write(tmp_path_factory.mktemp("planted") / "trace.sqlite")) as trace:
                findings[key] = evaluate_rules(trace, request.module.RULES)
        return findings[key]

    return evaluate_once


@pytest.fixture
def diagnose_program(tmp_path: Path) -> Callable[..., Diagnosis]:
    """Return a function that diagnoses a program of `ailments` with some rules."""

    def diagnose(make: Callable[[], Any], *rules: str) -> Diagnosis:
        with open_trace(make().write(tmp_path / "trace.sqlite")) as trace:
            return diagnose_with(trace, *rules)

    return diagnose


@pytest.fixture(scope="module")
def run_rule() -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Give a function that runs a rule's query on tables (`rule_tables.open_rules`)."""
    with open_rules() as run:
        yield run


@pytest.fixture
def cure_of(run_rule: Callable[..., list[dict[str, Any]]]) -> Callable[..., tuple[str, dict[str, Any]]]:
    """Return a function that runs a rule on tables, and returns the cure of its only finding, and its row."""

    def choose(name: str, **tables: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
        (row,) = run_rule(name, **tables)
        return choose_cure(RULES[name].cure, ANY, row["cure_case"])[1].strip(), row

    return choose


@pytest.fixture
def computed_facts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the producers that compute facts, in order."""
    from nsys_insight.facts.store import Facts

    order: list[str] = []
    compute_facts = Facts._find

    def find_and_record(self: Facts, name: str, options: FactOptions, catalogs: Sequence[str]) -> None:
        compute_facts(self, name, options, catalogs)
        order.append(name)

    monkeypatch.setattr(Facts, "_find", find_and_record)
    return order
