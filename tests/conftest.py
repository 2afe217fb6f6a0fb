"""What all tests share: the traces, and that nothing of the user's settings or cache is seen or touched."""

from __future__ import annotations

import os
import signal
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from nsys_insight.cli import ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_insight.facts.context import FactOptions

REPOSITORY = Path(__file__).parents[1]
_NUMBERS = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let goldens be written, and sweeps be whole."""
    parser.addoption("--golden", action="store_true", help="write the goldens that changed instead of comparing")
    parser.addoption("--all", action="store_true", help="run the slow tests and the sweeps as well")


def pytest_configure(config: pytest.Config) -> None:
    """Let tests start the tool as users do.

    They send Ctrl-C to it, which is ignored in a shell's background job; and without its bytecode each start takes
    longer. No example has a deadline: how long one takes says more of the machine. There are few by default.
    """
    settings.register_profile("any machine", deadline=None, max_examples=100 if config.getoption("--all") else 15)
    settings.load_profile("any machine")
    config.addinivalue_line("markers", "sweep: one more of a kind that the other tests have one of; run by --all")
    config.addinivalue_line("markers", "slow: takes half a second or more of CPU time; run by --all")
    config.addinivalue_line("markers", "wheel: what needs the files that a wheel carries; CI runs these on the wheel")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the sweeps and the slow tests, unless `--all` is given or a test is named."""
    if config.getoption("--all") or any("::" in argument for argument in config.args):
        return
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (left_out if any(map(item.get_closest_marker, ("sweep", "slow"))) else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Share only whole folders among processes: for a file or a test, to start them takes longer than to run it."""
    if all(Path(argument).is_dir() for argument in config.args):
        return None
    config.option.dist = "no"
    return 0


@pytest.fixture(scope="session", autouse=True)
def nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget the user's settings and have a cache folder for fixtures that live longer than a test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            # These two say what to test with, not how it behaves.
            if name.startswith("NSYS_INSIGHT_") and name not in ("NSYS_INSIGHT_COMMAND", "NSYS_INSIGHT_NSYS"):
                patch.delenv(name)
        patch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    """Undo what the command line does to signals where a test runs it in its own process.

    Its end ignores Ctrl-C, and its watch would end the process at a signal that another test handles.
    """
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    signal.set_wakeup_fd(-1)
    ending._codes.clear()
    ending._received.clear()
    for each, handler in handlers.items():
        signal.signal(each, handler)


@pytest.fixture(autouse=True, name="cache")
def cache_folder_of_its_own(all_caches: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a cache folder that nobody has used; it is made by who first needs it."""
    folder = all_caches / str(next(_NUMBERS))
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def all_caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder in which each test has its own cache."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(scope="session")
def sample() -> Callable[[str], Path]:
    """Give the path of a sample trace by its name, such as decode_eager."""
    return lambda name: REPOSITORY / "sample_traces" / f"{name}.sqlite"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Give the folder with more traces that stands beside some checkouts; skip where it does not."""
    folder = REPOSITORY.parent / "shared"
    if not (folder / "traces").is_dir():
        pytest.skip("needs the traces in ../shared")
    return folder


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the names of the producers whose facts are found, in their order."""
    from nsys_insight.facts.store import Facts

    order: list[str] = []
    find = Facts._find

    def noting(self: Facts, kind: str, options: FactOptions, parts: Sequence[str]) -> None:
        find(self, kind, options, parts)
        order.append(kind)

    monkeypatch.setattr(Facts, "_find", noting)
    return order
