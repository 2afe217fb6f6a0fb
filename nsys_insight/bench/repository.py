"""Read the commit and the changes of the user's repository with git, which runs nothing that the repository names.

A repository's configuration names programs: hooks, a file-system monitor, filters, converters of text, a pager. Some of
them run on `git status` and `git diff`, and no option of these commands stops a filter. So git looks at the
repository twice. First, `git rev-parse` and `git config` read it. They read neither the index nor a file of the
working tree, and run no program. Then `git diff` compares the working tree with the commit from a folder of ours: it
has a copy of the index, reads the repository's objects, and has a configuration that we wrote. There, no name of
a program has a meaning.

What a filter changes cannot be compared without it: such files are left out. So is what is inside of a submodule.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from nsys_insight import cache_folder, own_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TIMEOUT_S = 30
# What says how text is stored and how files are compared. It names no program.
_HARMLESS_SETTINGS = ("autocrlf", "eol", "filemode", "ignorecase", "symlinks", "trustctime", "checkstat")
# Git's own variables, of the user's shell or of a hook that we run in, would undo what is set here.
_NO_CONFIGURATION = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
    # A partial clone fetches missing objects, by programs that its configuration names.
    "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip
_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--ignore-submodules=dirty")
_MAX_ARGUMENTS_LENGTH = 20_000  # of paths in one command; Windows takes 32,767 characters


class _Changes(NamedTuple):
    """Changed files: those that can be compared, and whether there are others, which a filter changes."""

    paths: list[bytes]
    has_filtered: bool


def read_git_commit(folder: Path | None = None) -> dict[str, str]:
    """Return the commit of the folder; empty outside of a repository.

    `+changes` follows it if files differ from the commit. `+unchecked` follows it if that is unknown: only files with a
    filter may differ, or git cannot compare.
    """
    try:
        with _Repository(folder or Path.cwd()) as repository:
            commit, suffix = repository.commit[:12], "+unchecked"
            with suppress(subprocess.SubprocessError):
                changes = repository.list_changes()
                suffix = "+changes" if changes.paths else "+unchecked" if changes.has_filtered else ""
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return {"commit": commit + suffix}


def read_git_diff(folder: Path | None = None) -> str:
    """Return the changes since the commit as a patch; empty without changes, or outside of a repository."""
    try:
        with _Repository(folder or Path.cwd()) as repository:
            return repository.write_patch(repository.list_changes().paths)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""


class _Repository:
    """The repository around a folder, compared from a folder of ours that lasts as long as the context.

    Raises:
        OSError: There is no git, or a file cannot be read.
        SubprocessError: The folder is in no repository with a commit, or git fails.
        ValueError: Git's answer cannot be understood.
    """

    def __init__(self, folder: Path) -> None:
        self._git, self._folder = _find_git(), folder

    def __enter__(self) -> Self:
        answer = self._ask_repository(
            "rev-parse", "--show-toplevel", "--git-path", "index", "--git-path", "objects", "--git-path",
            "info/attributes", "HEAD",
        )  # fmt: skip
        top, index, objects, attributes, self.commit = answer.splitlines()
        self._top, self._objects = Path(top), (self._folder / objects).absolute()
        with ExitStack() as stack:
            self._private_folder = stack.enter_context(cache_folder.use_temporary_folder()).path / "git"
            own_files.make_subfolder(self._private_folder, is_for_others=True)
            self._fill(self._private_folder, self._folder / index, self._folder / attributes)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _fill(self, private_folder: Path, index: Path, attributes: Path) -> None:
        (private_folder / "refs").mkdir()
        (private_folder / "info").mkdir()
        (private_folder / "HEAD").write_text(f"{self.commit}\n", encoding="utf-8")
        (private_folder / "config").write_text(self._write_configuration(), encoding="utf-8")
        # The time of a copy stays that of the index: a file that is changed in the same instant is compared.
        copies = {index: "index", attributes: "info/attributes"}
        copies |= {file: file.name for file in index.parent.glob("sharedindex.*")}
        for file, name in copies.items():
            with suppress(FileNotFoundError):
                shutil.copy2(file, private_folder / name)

    def _write_configuration(self) -> str:
        is_sha256 = len(self.commit) > 40
        lines = [f"[core]\nrepositoryformatversion = {int(is_sha256)}\nbare = false"]
        with suppress(subprocess.SubprocessError):
            pattern = rf"^core\.({'|'.join(_HARMLESS_SETTINGS)})$"
            for line in self._ask_repository("config", "--get-regexp", pattern).splitlines():
                name, _, value = line.removeprefix("core.").partition(" ")
                if re.fullmatch("[a-z]+", value):
                    lines.append(f"{name} = {value}")
        return "\n".join([*lines, *(["[extensions]\nobjectformat = sha256"] if is_sha256 else []), ""])

    def list_changes(self) -> _Changes:
        """Compare the working tree with the commit."""
        answer = self._compare(*_DIFF, "--name-only", "-z", "HEAD")
        paths = [path for path in answer.split(b"\0") if path]
        attributes = self._compare("check-attr", "-z", "--stdin", "filter", stdin=answer) if paths else b""
        words = attributes.split(b"\0")
        no_filter = (b"unspecified", b"unset", b"set")
        filtered = {path for path, value in zip(words[::3], words[2::3], strict=False) if value not in no_filter}
        return _Changes([path for path in paths if path not in filtered], bool(filtered))

    def write_patch(self, paths: Iterable[bytes]) -> str:
        """Write the changes of some files as a patch."""
        patches = [self._compare("--literal-pathspecs", *_DIFF, "HEAD", "--", *part) for part in _split(paths)]
        return b"".join(patches).decode(errors="replace")

    def _ask_repository(self, *words: str) -> str:
        """Run a git command in the repository. Only commands that run no program are allowed."""
        return os.fsdecode(self._run(words, self._folder, dict(os.environ), b""))

    def _compare(self, *words: str | bytes, stdin: bytes = b"") -> bytes:
        """Run a git command from the folder of ours."""
        private_folder = str(self._private_folder)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {
            **_NO_CONFIGURATION, "HOME": private_folder, "XDG_CONFIG_HOME": private_folder,
            "GIT_DIR": private_folder, "GIT_WORK_TREE": str(self._top), "GIT_OBJECT_DIRECTORY": str(self._objects),
        }  # fmt: skip
        return self._run(words, self._top, environment, stdin)

    def _run(self, words: Iterable[str | bytes], folder: Path, environment: dict[str, str], stdin: bytes) -> bytes:
        command = [self._git, "--no-pager", "--no-optional-locks", *words]
        return subprocess.run(  # noqa: S603 - git, by its full path, which runs nothing that the folder names
            command, cwd=folder, env=environment, input=stdin, capture_output=True, timeout=_TIMEOUT_S, check=True
        ).stdout


def _find_git() -> str:
    """Return the path of git. A folder of the search path that is relative is the working folder, which is not ours."""
    for entry in filter(os.path.isabs, os.get_exec_path()):
        git = shutil.which("git", path=entry)
        if git and Path(git).parent == Path(entry):
            return git
    raise FileNotFoundError("git")


def _split(paths: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Split paths into parts that a command line holds."""
    part: list[bytes] = []
    for path in paths:
        if part and sum(map(len, part)) + len(path) > _MAX_ARGUMENTS_LENGTH:
            yield part
            part = []
        part.append(path)
    if part:
        yield part
