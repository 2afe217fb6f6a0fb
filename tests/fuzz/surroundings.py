"""Files of a user around a command: settings, and files with names that the program itself uses.

    ["settings", folder, text]       a file nsys-insight.toml in the working folder, the one around it, or at home
    ["file", folder, name, text]     in one of `FOLDERS`
    ["link", folder, name]           a link to a file in the home folder

No command changes any of them. What a command may write is the named output, and entries of the cache that a list of
the program's own files has.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight import own_files

if TYPE_CHECKING:
    import random
    from pathlib import Path

FOLDERS = ("tmp", "cache", "out", "project/work", "home")
SETTINGS_FILE = "nsys-insight.toml"
SETTINGS = (
    "", "\n", "[diagnose]\n", '[diagnose]\nignore = ["NSI5"]\n', '[diagnose]\nselect = ["NSI1", "d2h-sync"]\n',
    '[diagnose]\nignore = ["NSI999"]\n', "[diagnose]\nignore = 5\n", '[diagnose]\nignore = "NSI402"\n',
    "diagnose = 1\n", "diagnose = []\n", "[diagnose]\nignore = [[]]\n", "[diagnose]\nignore = [\n", "[diagnose",
    "\ufeff[diagnose]\n", "\0", "[tool.ruff]\nselect = ['ALL']\n", "{}", '{"diagnose": {}}', "<html>",
    "[[diagnose]]\nignore = []\n", "a = " + "[" * 300, "[diagnose]\nignore = ['" + "x" * 300 + "']\n", "\udcff",
    '[diagnose]\nignore = ["\\u001b[31m"]\n', "[diagnose.ignore]\n", '[diagnose]\nignore = ["", " , "]\n',
)  # fmt: skip
NAMES = (
    "nsys-insight-main/README.md", "nsys-insight-x/.lock", "nsys-insight-x/.nsys-insight-files", ".nsys-insight-files",
    ".nsys-insight-1-ab/thesis.tex", ".nsys-insight-x-abcd1234.csv", "nsys-insight-notes.txt", f"{'0' * 32}.last",
    f"{'1' * 32}.sqlite", f"{'2' * 32}.duckdb", f"{'2' * 32}.duckdb.json", f"{'2' * 32}.duckdb.wal", "model-3.duckdb",
    "run/thesis.tex", ".work/thesis.tex", "a.facts/about.json", "fleet.json", "shell-history", "converted.sqlite",
    "converted.sqlite-journal", "broken.duckdb", "broken.nsys-rep.txt", "spill-1/duckdb_temp_storage-0.tmp", "locks/x",
    "nsys-insight/last.json", "duckdb.py", "json.py", ".duckdbrc", "baselines/main.json", ".nsys-insight/x.sql",
)  # fmt: skip
TEXTS = (
    "mine\n", "", "{}", "[]", "null", "\0", '{"program": "nsys-insight files/1"}\n"../home/thesis.tex"\n', "SELECT 1",
    '{"program": "nsys-insight files/1", "token": "", "process": 1, "start_ns": 0, "folder": "", "inode": 0}\n["*"]\n',
)  # fmt: skip


class Entry(NamedTuple):
    """A file, folder or link: its kind, what it contains, when it was written, and whether a list of ours has it."""

    kind: str
    content: object
    written_ns: int
    is_ours: bool


def draw(chance: random.Random) -> list[list[Any]]:
    """Draw the files of a user."""
    kinds = (
        lambda: ["settings", chance.choice(("project/work", "project", "home")), chance.choice(SETTINGS)],
        lambda: ["file", chance.choice(FOLDERS), chance.choice(NAMES), chance.choice(TEXTS)],
        lambda: ["file", chance.choice(FOLDERS), chance.choice(NAMES), chance.choice(TEXTS)],
        lambda: ["link", chance.choice(FOLDERS), chance.choice(NAMES)],
    )
    return [chance.choice(kinds)() for _ in range(chance.choice((0, 1, 3, 10)))]


def write(place: Path, edit_list: list[list[Any]]) -> None:
    """Write them below a folder, without those of an earlier call. Entries of the cache stay."""
    for name in FOLDERS:
        folder = place / name
        if name != "cache":
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in [*folder.iterdir()] if name == "cache" else []:
            if path.name != own_files.MARKER and not own_files.is_own(path):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (place / "project" / SETTINGS_FILE).unlink(missing_ok=True)
    (place / "home" / "thesis.tex").write_text("mine\n", encoding="utf-8")
    for kind, folder, name, *texts in edit_list:
        path = place / folder / (SETTINGS_FILE if kind == "settings" else name)
        with suppress(OSError):  # another edit made a file in the place of the folder, or the file
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "link":
                path.symlink_to(place / "home" / "thesis.tex")
            elif not path.exists():
                text = name if kind == "settings" else texts[0]
                path.write_bytes(text.encode("utf-8", "surrogateescape"))


def read(place: Path) -> dict[str, Entry]:
    """Return all files, folders and links below the folders, by name."""
    entries = {}
    for top in ("tmp", "cache", "out", "project", "home"):
        for path in sorted((place / top).rglob("*")):
            is_ours = top == "cache" and (path == place / top / own_files.MARKER or own_files.is_own(path))
            written_ns = 0 if path.is_dir() else path.lstat().st_mtime_ns
            if path.is_symlink():
                kind, content = "link", str(path.readlink())
            elif path.is_dir():
                kind, content = "folder", ""
            else:
                kind, content = "file", path.lstat().st_size if is_ours else path.read_bytes()
            entries[path.relative_to(place).as_posix()] = Entry(kind, content, written_ns, is_ours)
    return entries


def find_change(before: dict[str, Entry], after: dict[str, Entry], output: str = "") -> str:
    """Describe a change that a command must not make, or return an empty text.

    The command may write `output`, but a user's file in its place stays.
    """
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old == new or ((old is None or old.is_ours) and (new is None or new.is_ours)):
            continue
        if old is None and output and (name == output or name.startswith(f"{output}/")):
            continue
        change = "made" if old is None else "removed" if new is None else "changed"
        return f"{change} {name}, which is {'the user' if old else 'nobody'}'s"
    return ""
