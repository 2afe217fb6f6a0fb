"""Sensitive words of a trace: users, hosts, values of environment variables, names of other processes."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.captured import find_command_lines
from nsys_insight.ingest import private
from nsys_insight.ingest.sqlite_file import explain_damage, read_only_uri
from nsys_insight.sql.quoting import identifier
from nsys_insight.text.secrets import mask_arguments, mask_secrets

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# Generic names of users and hosts, which do not identify anyone.
GENERIC_NAMES = frozenset(
    """admin anonymous container default docker guest home host linux local localhost nobody none null root system
    ubuntu unknown user username users vm windows""".split()  # noqa: SIM905 - easier to read than a list
)
_USER = re.compile(r"(?:^|_)(?:USER|USERNAME|LOGNAME)$|UserName$")
_HOST = re.compile(r"(?:^|_)(?:HOST|HOSTNAME|NODENAME|NODEID|COMPUTERNAME)$|^Hostname$|^DEVICE_DISPLAY_NAME$|_HOST$")
_HOME = re.compile(r"^/(?:home|Users|u)(?:/\w)?/([\w.-]+)|^[A-Z]:\\Users\\([^\\]+)")
_VARIABLE_START = re.compile(r"(?:^|\0)[A-Za-z_][^=\0]*=")
# Minimum length of the values of variables to look for: shorter values occur in many other texts.
MIN_VALUE_LENGTH = 8
_MIN_SECRET_LENGTH = 5
_URL_HOST = re.compile(r"://(?:[^\s/@]*@)?([A-Za-z][\w-]*(?:\.[\w-]+)+)")
# Processes with rows in these tables are the program's own.
_EVENT_TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS",
)  # fmt: skip
_NAME_COLUMNS = ("demangledName", "shortName", "mangledName")


@dataclass
class Sensitive:
    """Words to look for in every text of the trace.

    `users` and `hosts` are names. `values` are the values of environment variables and secret arguments. `folder` is
    the program's working directory. `roots` are first folders of paths. `other_processes` are names of other processes
    and threads. `kernels` and `calls` are names of kernels and API calls. `output_ids` are ids of strings that the
    program printed. `program_output` are these strings, if they are longer than a word.
    """

    users: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    folder: str = ""
    roots: set[str] = field(default_factory=set)
    other_processes: set[str] = field(default_factory=set)
    kernels: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    output_ids: set[int] = field(default_factory=set)
    program_output: set[str] = field(default_factory=set)


def find_sensitive(trace: Path) -> Sensitive:
    """Collect the sensitive words of a SQLite export.

    Raises:
        TraceError: The file is damaged.
    """
    import sqlite3

    with explain_damage(trace), closing(sqlite3.connect(read_only_uri(trace), uri=True)) as database:
        database.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        return _read_sensitive(database)


def is_environment(text: str) -> bool:
    """Return whether a text is a full environment: NAME=value, NAME=value, separated by zeros."""
    return "\0" in text and bool(_VARIABLE_START.search(text))


def _read_sensitive(database: sqlite3.Connection) -> Sensitive:
    sensitive = Sensitive()
    secrets: list[str] = []

    def collect(secret: str) -> str:
        secrets.append(secret)
        return secret

    settings = list(_read_settings(database))
    for name, value in settings:
        if name.endswith(":WORKING_DIR"):
            sensitive.folder = sensitive.folder or _normalize_folder(value)
        _add_words(sensitive, name, value)
    for name, value in _read_variables(database):
        _add_words(sensitive, name, value)
        mask_secrets(f"{name}={value}", replace=collect)
        if len(value) >= MIN_VALUE_LENGTH and not value.isdecimal() and re.search(r"[A-Za-z]", value):
            sensitive.values.add(value)
        for path in re.findall(r"(?<![\w/.])/[^\s:;,\"']+", value):
            sensitive.roots.add(path.split("/")[1])
            if home := _HOME.match(path):
                sensitive.users.add(home[1] or home[2])
    for line in find_command_lines(settings).values():
        mask_arguments([settings[index][1] for index in line], replace=collect)
    sensitive.values |= {secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH}
    for names in (sensitive.users, sensitive.hosts):
        names -= {name for name in names if len(name) < 3 or name.lower() in GENERIC_NAMES or name.isdecimal()}
    sensitive.hosts |= {host.partition(".")[0] for host in sensitive.hosts if not host[0].isdecimal()} - GENERIC_NAMES
    sensitive.roots.discard("")
    _read_processes(database, sensitive)
    return sensitive


def _add_words(sensitive: Sensitive, name: str, value: str) -> None:
    sensitive.hosts.update(_URL_HOST.findall(value))
    word = value.strip("\"'")
    if not re.fullmatch(r"[\w.@+-]+", word):
        return
    if _USER.search(name):
        sensitive.users.add(word)
    elif _HOST.search(name):
        sensitive.hosts.add(word)


def _normalize_folder(path: str) -> str:
    """Return the program's folder. Empty for a folder near the root or a home folder."""
    folder = path.rstrip("/\\")
    is_home = (home := _HOME.match(folder)) and home.end() == len(folder)
    return "" if folder.count("/") + folder.count("\\") < 2 or is_home else folder


def _read_settings(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    for table in (*private.SETTINGS_TABLES, "TARGET_INFO_SYSTEM_ENV"):
        for name, value in read_rows(database, table, "name", "value"):
            if isinstance(name, str) and isinstance(value, str):
                yield name, value


def _read_variables(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield every environment variable in the trace, from all tables that contain some."""
    for name, value in _read_settings(database):
        if "ENVIRONMENT" in name:
            variable, _, variable_value = value.partition("=")
            yield variable, variable_value.removeprefix('"').removesuffix('"')
        elif name == "DeviceEnvironment":
            for variable in value.split(";"):
                yield variable.partition("=")[::2]
    for (text,) in read_rows(database, "StringIds", "value"):
        if isinstance(text, str) and is_environment(text):
            for variable in text.split("\0"):
                yield variable.partition("=")[::2]


def _read_processes(database: sqlite3.Connection, sensitive: Sensitive) -> None:
    """Collect names of processes and threads outside the program, of kernels and calls, and the program's output."""
    program_ids = {
        number >> 24 & 0xFFFFFF
        for table in _EVENT_TABLES
        for column in ("globalPid", "globalTid")
        for (number,) in read_rows(database, table, column, distinct=True)
        if isinstance(number, int)
    }
    strings: dict[Any, Any] = dict(read_rows(database, "StringIds", "id", "value"))
    named_ids = [(name, number) for name, number in read_rows(database, "PROCESSES", "name", "globalPid")]
    named_ids += [
        (strings.get(name), number) for name, number in read_rows(database, "ThreadNames", "nameId", "globalTid")
    ]
    program_names = {
        name for name, number in named_ids if isinstance(number, int) and number >> 24 & 0xFFFFFF in program_ids
    }
    sensitive.other_processes = (
        {name for name, _ in named_ids if isinstance(name, str) and name} - program_names if program_ids else set()
    )
    name_ids = {
        id_
        for column in _NAME_COLUMNS
        for (id_,) in read_rows(database, "CUPTI_ACTIVITY_KIND_KERNEL", column, distinct=True)
    }
    sensitive.kernels = {text for id_ in name_ids if isinstance(text := strings.get(id_), str) and text}
    name_ids = {id_ for (id_,) in read_rows(database, "CUPTI_ACTIVITY_KIND_RUNTIME", "nameId", distinct=True)}
    sensitive.calls = {text for id_ in name_ids if isinstance(text := strings.get(id_), str) and text}
    sensitive.other_processes -= sensitive.kernels | sensitive.calls
    sensitive.output_ids = {
        id_ for (id_,) in read_rows(database, "ProcessStreams", "contentId") if isinstance(id_, int)
    }
    texts = [strings.get(id_) for id_ in sensitive.output_ids]
    texts += [text for (text,) in read_rows(database, "ANALYSIS_FILE", "content")]
    sensitive.program_output = {text for text in texts if isinstance(text, str) and len(text) >= MIN_VALUE_LENGTH}
    sensitive.program_output -= sensitive.kernels | sensitive.calls


def read_rows(database: sqlite3.Connection, table: str, *columns: str, distinct: bool = False) -> Iterable[Any]:
    """Read columns of a table. No rows if the table does not have all of them."""
    existing_columns = {name for (name,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    if not existing_columns.issuperset(columns):
        return []
    names = ", ".join(map(identifier, columns))
    return database.execute(f"SELECT {'DISTINCT' if distinct else ''} {names} FROM {identifier(table)}")
