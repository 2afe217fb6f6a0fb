"""What a trace says of the machine, its user and other programs: the words to look for in all that it holds."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import TraceError
from nsys_insight.facts.captured import command_lines
from nsys_insight.ingest import private
from nsys_insight.ingest.sqlite_file import uri
from nsys_insight.sql.quoting import identifier
from nsys_insight.text.secrets import masked, masked_words

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# What says nothing of anybody, though it is called a user or a host.
_ANYBODY = frozenset(
    """admin anonymous container default docker guest home host linux local localhost nobody none null root system
    ubuntu unknown user username users vm windows""".split()  # noqa: SIM905 - easier to read than a list
)
_USER = re.compile(r"(?:^|_)(?:USER|USERNAME|LOGNAME)$|UserName$")
_HOST = re.compile(r"(?:^|_)(?:HOST|HOSTNAME|NODENAME|NODEID|COMPUTERNAME)$|^Hostname$|^DEVICE_DISPLAY_NAME$|_HOST$")
_HOME = re.compile(r"^/(?:home|Users|u)(?:/\w)?/([\w.-]+)|^[A-Z]:\\Users\\([^\\]+)")
_VARIABLE = re.compile(r"(?:^|\0)[A-Za-z_][^=\0]*=")
# A variable's value is looked for if it is that long and has a letter; a shorter one is a word of many texts.
LEAST = 8
_LEAST_OF_SECRETS = 5
_ADDRESS = re.compile(r"://(?:[^\s/@]*@)?([A-Za-z][\w-]*(?:\.[\w-]+)+)")
# Tables whose rows are what the program did: processes in them are its own.
_EVENTS = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS",
)  # fmt: skip
_NAMES = ("demangledName", "shortName", "mangledName")


@dataclass
class Known:
    """What to look for.

    `users` and `hosts` are names, `values` those of environment variables and secret arguments, `folder` the program's
    own, `roots` the first folders of paths that are known to be paths, `others` what processes are called that are not
    the program's, `kernels` and `calls` the names of kernels and API calls, `streams` the ids of strings that are what
    the program printed, `printed` those of them that are longer than a word.
    """

    users: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    folder: str = ""
    roots: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    kernels: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    streams: set[int] = field(default_factory=set)
    printed: set[str] = field(default_factory=set)


def known(trace: Path) -> Known:
    """Read from a SQLite export what is to be looked for in it.

    Raises:
        TraceError: The file is damaged.
    """
    import sqlite3

    try:
        with closing(sqlite3.connect(uri(trace), uri=True)) as database:
            database.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            return _read(database)
    except sqlite3.DatabaseError as error:
        raise TraceError(
            f"{trace} is a damaged SQLite file: {error}", "export the report again: nsys export --type sqlite"
        ) from None


def is_environment(text: str) -> bool:
    """Tell whether a text is a whole environment: NAME=value, NAME=value, with zeros between."""
    return "\0" in text and bool(_VARIABLE.search(text))


def _read(database: sqlite3.Connection) -> Known:
    found = Known()
    secrets: list[str] = []

    def collect(secret: str) -> str:
        secrets.append(secret)
        return secret

    settings = list(_settings(database))
    for name, value in settings:
        if name.endswith(":WORKING_DIR"):
            found.folder = found.folder or _own_folder(value)
        _look(found, name, value)
    for name, value in _variables(database):
        _look(found, name, value)
        masked(f"{name}={value}", stand_in=collect)
        if len(value) >= LEAST and not value.isdecimal() and re.search(r"[A-Za-z]", value):
            found.values.add(value)
        for path in re.findall(r"(?<![\w/.])/[^\s:;,\"']+", value):
            found.roots.add(path.split("/")[1])
            if home := _HOME.match(path):
                found.users.add(home[1] or home[2])
    for line in command_lines(settings).values():
        masked_words([settings[at][1] for at in line], stand_in=collect)
    found.values |= {secret for secret in secrets if len(secret) >= _LEAST_OF_SECRETS}
    for names in (found.users, found.hosts):
        names -= {name for name in names if len(name) < 3 or name.lower() in _ANYBODY or name.isdecimal()}
    found.hosts |= {host.partition(".")[0] for host in found.hosts if not host[0].isdecimal()} - _ANYBODY
    found.roots.discard("")
    _read_processes(database, found)
    return found


def _look(found: Known, name: str, value: str) -> None:
    found.hosts.update(_ADDRESS.findall(value))
    word = value.strip("\"'")
    if not re.fullmatch(r"[\w.@+-]+", word):
        return
    if _USER.search(name):
        found.users.add(word)
    elif _HOST.search(name):
        found.hosts.add(word)


def _own_folder(path: str) -> str:
    """The program's folder, if it is one: not all of a disk, of a home folder, or of what is temporary."""
    folder = path.rstrip("/\\")
    is_home = (home := _HOME.match(folder)) and home.end() == len(folder)
    return "" if folder.count("/") + folder.count("\\") < 2 or is_home else folder


def _settings(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    for table in (*private.SETTINGS, "TARGET_INFO_SYSTEM_ENV"):
        for name, value in rows(database, table, "name", "value"):
            if isinstance(name, str) and isinstance(value, str):
                yield name, value


def _variables(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Give all environment variables that the trace has, wherever it has them."""
    for name, value in _settings(database):
        if "ENVIRONMENT" in name:
            variable, _, given = value.partition("=")
            yield variable, given.removeprefix('"').removesuffix('"')
        elif name == "DeviceEnvironment":
            for variable in value.split(";"):
                yield variable.partition("=")[::2]
    for (text,) in rows(database, "StringIds", "value"):
        if isinstance(text, str) and is_environment(text):
            for variable in text.split("\0"):
                yield variable.partition("=")[::2]


def _read_processes(database: sqlite3.Connection, found: Known) -> None:
    """Find what processes and threads are called that are not the program's."""
    own = {
        number >> 24 & 0xFFFFFF
        for table in _EVENTS
        for column in ("globalPid", "globalTid")
        for (number,) in rows(database, table, column, distinct=True)
        if isinstance(number, int)
    }
    strings: dict[Any, Any] = dict(rows(database, "StringIds", "id", "value"))
    called = [(name, number) for name, number in rows(database, "PROCESSES", "name", "globalPid")]
    called += [(strings.get(name), number) for name, number in rows(database, "ThreadNames", "nameId", "globalTid")]
    of_own = {name for name, number in called if isinstance(number, int) and number >> 24 & 0xFFFFFF in own}
    found.others = {name for name, _ in called if isinstance(name, str) and name} - of_own if own else set()
    ids = {id_ for column in _NAMES for (id_,) in rows(database, "CUPTI_ACTIVITY_KIND_KERNEL", column, distinct=True)}
    found.kernels = {text for id_ in ids if isinstance(text := strings.get(id_), str) and text}
    ids = {id_ for (id_,) in rows(database, "CUPTI_ACTIVITY_KIND_RUNTIME", "nameId", distinct=True)}
    found.calls = {text for id_ in ids if isinstance(text := strings.get(id_), str) and text}
    found.others -= found.kernels | found.calls
    found.streams = {id_ for (id_,) in rows(database, "ProcessStreams", "contentId") if isinstance(id_, int)}
    texts = [strings.get(id_) for id_ in found.streams]
    texts += [text for (text,) in rows(database, "ANALYSIS_FILE", "content")]
    found.printed = {text for text in texts if isinstance(text, str) and len(text) >= LEAST}
    found.printed -= found.kernels | found.calls


def rows(database: sqlite3.Connection, table: str, *columns: str, distinct: bool = False) -> Iterable[Any]:
    """Give columns of a table; nothing where it has not all of them."""
    has = {name for (name,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    if not has.issuperset(columns):
        return []
    names = ", ".join(map(identifier, columns))
    return database.execute(f"SELECT {'DISTINCT' if distinct else ''} {names} FROM {identifier(table)}")
