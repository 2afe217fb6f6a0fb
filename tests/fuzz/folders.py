"""Edits that break a folder of Parquet files with facts: names, links, lost and changed files, and its JSON.

["name", "streamId=99"]    the folder around it
["link", file] ["lose", file] ["flip", file, offset, byte] ["cut", file, size]     one of its files, by number
["json", path, value]      an entry of about.json, by the numbers of its keys; "deep" is a list in many lists
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from pathlib import Path

NAMES = ("streamId=99", "end=7", "a*b", "a[1]", "{x}", "start=1", "x y'z", "%s", "é")
VALUES = (None, 0, -1, 1 << 63, 1 << 200, 0.5, "", "x", [], {}, [1], {"a": 1}, True, "deep")
DEEP = "[" * 50_000 + "]" * 50_000


def draw_folder_edits(chance: random.Random) -> list[list[Any]]:
    """Draw edits for a folder: another name, and a few more."""
    kinds = (
        lambda: ["link", chance.randrange(100)],
        lambda: ["lose", chance.randrange(100)],
        lambda: ["flip", chance.randrange(100), chance.randrange(1 << 20), chance.randrange(1, 256)],
        lambda: ["cut", chance.randrange(100), chance.randrange(5000)],
        lambda: ["json", [chance.randrange(8) for _ in range(chance.choice((1, 1, 2, 3)))], chance.choice(VALUES)],
    )
    return [["name", chance.choice(NAMES)], *(chance.choice(kinds)() for _ in range(chance.choice((0, 1, 1, 2))))]


def write_broken_folder(base: Path, place: Path, edits: list[list[Any]]) -> Path:
    """Copy a folder into another one, and break it. A link leads to a file of the same table outside of the folder."""
    shutil.rmtree(place, ignore_errors=True)
    name = next((edit[1] for edit in edits if edit[0] == "name"), "x")
    folder = place / name / base.name
    shutil.copytree(base, folder)
    for kind, *arguments in edits:
        files = sorted(folder.rglob("*.parquet"))
        file = files[arguments[0] % len(files)] if kind in ("link", "lose", "flip", "cut") else folder
        if kind == "link":
            outside = place / "outside.parquet"
            file.replace(outside)
            file.symlink_to(outside)
        elif kind == "lose":
            file.unlink()
        elif kind in ("flip", "cut"):
            content = bytearray(file.read_bytes())
            if kind == "cut":
                content = content[: arguments[1]]
            elif content:
                content[arguments[1] % len(content)] ^= arguments[2]
            file.write_bytes(content)
        elif kind == "json":
            _edit_json(folder / "about.json", *arguments)
    return folder


def _edit_json(path: Path, numbers: list[int], value: Any) -> None:
    record = json.loads(path.read_text(encoding="utf-8").replace(DEEP, '"deep"'))
    node = record
    for number in numbers[:-1]:
        values = node.values() if isinstance(node, dict) else node
        children = [child for child in values if isinstance(child, dict | list)]
        if not children:
            break
        node = children[number % len(children)]
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    if keys:
        node[keys[numbers[-1] % len(keys)]] = value
    text = json.dumps(record)
    path.write_text(text.replace('"deep"', DEEP), encoding="utf-8")
