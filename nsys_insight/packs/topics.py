"""What reports are about: their groups in the help, the README and the page."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.packs.built_in import built_in
from nsys_insight.paths import queries_folder

if TYPE_CHECKING:
    from nsys_insight.packs.pack import Pack


class Topic(NamedTuple):
    """Reports that belong together; `about` is one sentence on what they are about."""

    name: str
    title: str
    about: str


@cache
def topics() -> dict[str, Topic]:
    """The topics by name, in the order of `queries/reports/topics.toml`."""
    text = (queries_folder() / "reports" / "topics.toml").read_text(encoding="utf-8")
    return {name: Topic(name, entry["title"], entry["about"]) for name, entry in tomllib.loads(text).items()}


def by_topic() -> dict[Topic, list[Pack]]:
    """The packs of the package by topic, both in their order."""
    packs = sorted(built_in().values(), key=lambda pack: (pack.place, pack.name))
    return {topic: [pack for pack in packs if pack.topic == topic.name] for topic in topics().values()}
