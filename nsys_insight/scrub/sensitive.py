"""Sensitive words of a trace: users, hosts, values of environment variables, names of other processes."""

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

# Names of users and hosts that identify nobody.
_GENERIC_NAMES = frozenset(
    """admin anonymous container default docker guest home host linux local localhost nobody none null root system
    ubuntu unknown user username users vm windows""".split()  # noqa: SIM905 - easier to read than a list
)
_USER = re.compile(r"(?:^|_)(?:USER|USERNAME|LOGNAME)$|UserName$")
_HOST = re.compile(r"(?:^|_)(?:HOST|HOSTNAME|NODENAME|NODEID|COMPUTERNAME)$|^Hostname$|^DEVICE_DISPLAY_NAME$|_HOST$")
_HOME = re.compile(r"^/(?:home|Users|u)(?:/\w)?/([\w.-]+)|^[A-Z]:\\Users\\([^\\]+)")
_VARIABLE = re.compile(r"(?:^|\0)[A-Za-z_][^=\0]*=")
# Shorter values of variables are not looked for: they are part of many other texts.
LEAST_LENGTH = 8
_LEAST_SECRET_LENGTH = 5
_ADDRESS = re.compile(r"://(?:[^\s/@]*@)?([A-Za-z][\w-]*(?:\.[\w-]+)+)")
# Processes with rows in these tables are the program's own.
_EVENTS = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS",
)  # fmt: skip
_NAMES = ("demangledName", "shortName", "mangledName")


@dataclass
class Sensitive:
    """Words to look for in every text of the trace.

    `users` and `hosts` are names. `values` are those of environment variables and secret arguments. `folder` is the
    program's working directory. `roots` are first folders of paths. `others` are names of other processes and threads.
    `kernels` and `calls` are names of kernels and API calls. `streams` are ids of strings that the program printed,
    `printed` those of the strings that are longer than a word.
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


def find_sensitive(trace: Path) -> Sensitive:
    """Collect the sensitive words of a SQLite export.

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


def _read(database: sqlite3.Connection) -> Sensitive:
    found = Sensitive()
    secrets: list[str] = []

    def collect(secret: str) -> str:
        secrets.append(secret)
        return secret

    settings = list(_settings(database))
    for name, value in settings:
        if name.endswith(":WORKING_DIR"):
            found.folder = found.folder or _own_folder(value)
        _add_name(found, name, value)
    for name, value in _variables(database):
        _add_name(found, name, value)
        masked(f"{name}={value}", stand_in=collect)
        if len(value) >= LEAST_LENGTH and not value.isdecimal() and re.search(r"[A-Za-z]", value):
            found.values.add(value)
        for path in re.findall(r"(?<![\w/.])/[^\s:;,\"']+", value):
            found.roots.add(path.split("/")[1])
            if home := _HOME.match(path):
                found.users.add(home[1] or home[2])
    for line in command_lines(settings).values():
        masked_words([settings[at][1] for at in line], stand_in=collect)
    found.values |= {secret for secret in secrets if len(secret) >= _LEAST_SECRET_LENGTH}
    for names in (found.users, found.hosts):
        names -= {name for name in names if len(name) < 3 or name.lower() in _GENERIC_NAMES or name.isdecimal()}
    found.hosts |= {host.partition(".")[0] for host in found.hosts if not host[0].isdecimal()} - _GENERIC_NAMES
    found.roots.discard("")
    _read_processes(database, found)
    return found


def _add_name(found: Sensitive, name: str, value: str) -> None:
    found.hosts.update(_ADDRESS.findall(value))
    word = value.strip("\"'")
    if not re.fullmatch(r"[\w.@+-]+", word):
        return
    if _USER.search(name):
        found.users.add(word)
    elif _HOST.search(name):
        found.hosts.add(word)


def _own_folder(path: str) -> str:
    """The program's folder; empty for a folder near the root or a home folder."""
    folder = path.rstrip("/\\")
    is_home = (home := _HOME.match(folder)) and home.end() == len(folder)
    return "" if folder.count("/") + folder.count("\\") < 2 or is_home else folder


def _settings(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    for table in (*private.SETTINGS, "TARGET_INFO_SYSTEM_ENV"):
        for name, value in rows(database, table, "name", "value"):
            if isinstance(name, str) and isinstance(value, str):
                yield name, value


def _variables(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield every environment variable in the trace, from each table that has some."""
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


def _read_processes(database: sqlite3.Connection, found: Sensitive) -> None:
    """Collect names of processes and threads that are not the program's."""
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
    found.printed = {text for text in texts if isinstance(text, str) and len(text) >= LEAST_LENGTH}
    found.printed -= found.kernels | found.calls


def rows(database: sqlite3.Connection, table: str, *columns: str, distinct: bool = False) -> Iterable[Any]:
    """Give columns of a table; nothing where it has not all of them."""
    has = {name for (name,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    if not has.issuperset(columns):
        return []
    names = ", ".join(map(identifier, columns))
    return database.execute(f"SELECT {'DISTINCT' if distinct else ''} {names} FROM {identifier(table)}")
