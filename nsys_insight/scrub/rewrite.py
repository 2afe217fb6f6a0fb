"""Replace private data in texts. Each name, path and address gets the same stand-in everywhere."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from nsys_insight.scrub.paths import FILE_SUFFIX, ROOTS, find_paths
from nsys_insight.scrub.sensitive import GENERIC_NAMES, MIN_VALUE_LENGTH, Sensitive, is_environment
from nsys_insight.text.secrets import mask_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_LIBRARY = re.compile(
    r"(?:lib|ld-)[\w.+-]*\.so[\d.]*|[\w.-]+\.dll|python[\d.]*|\[?(?:vdso|vsyscall|kernel\.kallsyms)\]?"
)
_URL = re.compile(
    r"(?<![\w+.-])(?P<scheme>[A-Za-z][\w+.-]{0,20})://(?:[^\s/?#@\"'<>]*@)?"
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s/?#:@\"'<>,;)]+)?(?P<port>:\d+)?(?P<path>/[^\s\"'<>,;)?#]+)?"
)
# Addresses with these schemes name files. Other paths in addresses are those of a service: /v1/models.
_FILE_SCHEMES = frozenset(
    "abfs abfss adl az azure dbfs ftp gcs gs hdfs nfs oss s3 s3a s3n scp sftp smb ssh wasb wasbs".split()  # noqa: SIM905
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")
# A user and a host without a domain. Symbols have versions (memcpy@GLIBC_2.2.5) and suffixes (memcpy@plt) in this form.
_ACCOUNT = re.compile(
    r"(?<![\w.+@?%-])(?P<user>[A-Za-z_][\w.+-]{0,63})@(?P<host>(?:\d{1,3}\.){3}\d{1,3}|[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*)(?![\w@])"
)
_NO_HOST = re.compile(
    r"(?:[A-Z]+_[\d.]+\w*|(?:CXXABI|GCC|GLIBC|GLIBCXX|LIB\w+|NVIDIA|OPENSSL)(?:_\w+)?(?:\.\d+)*|plt|got\w*|latest|HEAD|main|master"
    r"|v\d[\w.]*|cpu|cuda|(?:bf|fp|int|tf|u?int)\d+\w*|(?:device|rank|stream)\d*)"
)
# A range with its rank or device: step@gpu0.
_RANGE_WORDS = frozenset(
    """allgather allreduce attention attn backward batch block bwd conv decode epoch expert forward fwd gemm head iter
    iteration kernel layer matmul mlp prefill rank stage step stream token""".split()  # noqa: SIM905
)
_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9a-fA-F:.]*\d)[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
_MAC = re.compile(r"(?<![\w:-])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![\w:-])")
_UUID = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F])")
# CUDA accepts the first digits of a GPU's UUID, too.
_SHORT_UUID = re.compile(r"(?i)\b(?P<prefix>(?:GPU|MIG)-)(?P<number>[0-9a-f]{8}(?:[0-9a-f-]{0,24}[0-9a-f])?)(?![\w-])")
# Build ids of libraries, also as names of debug symbol files of nsys.
_HASH = re.compile(r"[0-9a-fA-F]{30,}(?:\.debug)?")
_HASH_WORD = re.compile(r"(?<![0-9A-Za-z_])(?=[a-fA-F]*\d)[0-9a-fA-F]{32,}(?![0-9A-Za-z_])")
_VERSION = re.compile(r"(?i)(?:version|\bv|driver|release|\.so\.|-)\s*:?\s*\Z")
# Maximum length of a text whose result is cached: NVTX texts repeat in many rows.
_MAX_CACHED_LENGTH = 1_000


class Rewriter:
    """Rewrites texts, and stores the stand-ins.

    `counts` has the number of distinct users, hosts, paths and so on that were rewritten. `stand_ins` has the texts
    that stand for them.

    Args:
        sensitive: Words to look for. Paths, addresses and the like are recognized by their form.
        key: Key to hash the names of kernels with. None leaves the names unchanged.
    """

    def __init__(self, sensitive: Sensitive, key: bytes | None = None) -> None:
        """Start without stand-ins."""
        self._sensitive, self._key = sensitive, key
        self._stand_ins: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}
        self.stand_ins: set[str] = set()
        self._roots = ROOTS | sensitive.roots
        # Short names occur as words in many texts, so for them an underscore is part of a word (`_bound_word`).
        self._names = _compile_words([*sensitive.users, *sensitive.hosts])
        self._values = _compile_words([value for value in sensitive.values if not value.startswith(("/", "~"))])
        self._rewrite_cached = lru_cache(50_000)(self._rewrite)

    def rewrite(self, text: str) -> str:
        """Return a text without private data."""
        return self._rewrite_cached(text) if len(text) <= _MAX_CACHED_LENGTH else self._rewrite(text)

    def _rewrite(self, text: str) -> str:
        replacement = self._replace_text(text)
        return self._replace_parts(text) if replacement is None else replacement

    def _replace_text(self, text: str) -> str | None:
        """Return the replacement of a text that is entirely private, or None."""
        if is_environment(text):
            self._stand_in("environment", text)
            return ""
        if text in self._sensitive.program_output:
            return ""
        if self._key is not None and text in self._sensitive.kernels:
            return (
                "kernel_"
                + hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:16]
            )
        if text in self._sensitive.other_processes:
            return self._stand_in("process", text)
        if _HASH.fullmatch(text):
            return self._stand_in("identifier", text)
        return None

    def _replace_parts(self, text: str) -> str:
        is_symbol = text in self._sensitive.kernels or text in self._sensitive.calls
        text = mask_secrets(text, replace=lambda secret: self._stand_in("secret", secret))
        if "@" in text:
            text = _EMAIL.sub(lambda match: self._stand_in("mail", match[0]), text)
        if "://" in text:
            text = _URL.sub(self._replace_url, text)
        if "@" in text and not is_symbol:
            text = _ACCOUNT.sub(self._replace_account, text)
        if "/" in text or "\\" in text:
            text = self._replace_paths(text, is_symbol=is_symbol)
        text = self._replace_addresses(text)
        if self._values is not None and not is_symbol:
            text = self._values.sub(lambda match: self._stand_in("value", match[0]), text)
        if self._names is not None:
            text = self._names.sub(lambda match: self._replace_name(match[0], is_symbol=is_symbol), text)
        return text

    def _replace_addresses(self, text: str) -> str:
        if text.count(".") >= 3:
            text = _IPV4.sub(self._replace_ipv4, text)
        if text.count(":") >= 2:
            text = _MAC.sub(lambda match: self._stand_in("address", match[0]), text)
            text = _IPV6.sub(self._replace_ipv6, text)
        if text.count("-") >= 4:
            text = _MAC.sub(lambda match: self._stand_in("address", match[0]), text)
            text = _UUID.sub(self._replace_uuid, text)
        if len(text) >= 32:
            text = _HASH_WORD.sub(lambda match: self._stand_in("identifier", match[0].lower()), text)
        if "GPU-" in text or "MIG-" in text:
            text = _SHORT_UUID.sub(self._replace_short_uuid, text)
        return text

    def is_stand_in(self, text: str) -> bool:
        """Return whether a text consists of stand-ins that were written: user_1@host_1, /folder_1/file_1.py."""
        if text in ("/program", "\\program") or text.startswith(("/program/", "/program\\")):
            return bool(self._sensitive.folder)
        words = [word for word in re.split(r"[@/\\\s\"']+", text) if word]
        return any(FILE_SUFFIX.sub("", word) in self.stand_ins for word in words) and all(
            FILE_SUFFIX.sub("", word) in self.stand_ins or word.lower() in GENERIC_NAMES or _LIBRARY.fullmatch(word)
            for word in words
        )

    def _stand_in(self, kind: str, text: str) -> str:
        stand_in = self._stand_ins.get((kind, text))
        if stand_in is None:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            stand_in = self._stand_ins[kind, text] = f"{kind}_{self.counts[kind]}"
            self.stand_ins.add(stand_in)
        return stand_in

    def _replace_name(self, name: str, *, is_symbol: bool) -> str:
        if is_symbol and len(name) < 5:
            return name
        return self._stand_in("user" if name in self._sensitive.users else "host", name)

    def _replace_url(self, match: re.Match[str]) -> str:
        scheme, host, port, path = match["scheme"], match["host"] or "", match["port"] or "", match["path"] or ""
        if host not in ("", "localhost", "127.0.0.1", "***"):
            host = self._stand_in("host", host)
        if len(path) > 1 and scheme.lower() in _FILE_SCHEMES:
            path = self._replace_path(path)
        return f"{scheme}://{host}{port}{path}"

    def _replace_account(self, match: re.Match[str]) -> str:
        user, host = match["user"], match["host"]
        if not _is_account(match):
            return match[0]
        if user.lower() not in GENERIC_NAMES and user not in self.stand_ins:
            user = self._stand_in("user", user)
        if not host[0].isdecimal() and host.lower() not in GENERIC_NAMES and host not in self.stand_ins:
            host = self._stand_in("host", host)
        return f"{user}@{host}"

    def _replace_paths(self, text: str, *, is_symbol: bool) -> str:
        pieces, position = [], 0
        for start, end in find_paths(text, self._roots, is_symbol=is_symbol):
            pieces += [text[position:start], self._replace_path(text[start:end])]
            position = end
        return "".join([*pieces, text[position:]]) if pieces else text

    def _replace_path(self, path: str) -> str:
        program_folder = self._sensitive.folder
        if program_folder and (
            path == program_folder or path.startswith((f"{program_folder}/", f"{program_folder}\\"))
        ):
            return "/program" + path[len(program_folder) :]
        is_windows = path[0] != "/" and "\\" in path
        folder, separator, name = path.rpartition("\\" if is_windows else "/")
        new_name = name if _LIBRARY.fullmatch(name) or not name else self._stand_in("file", name)
        if not new_name.startswith("lib") and (suffix := FILE_SUFFIX.search(name)) and new_name != name:
            new_name += suffix[0]
        return f"/{self._stand_in('folder', folder)}{'/' if separator else ''}{new_name}"

    def _replace_ipv4(self, match: re.Match[str]) -> str:
        return self._stand_in("address", match[0]) if _is_ipv4(match) else match[0]

    def _replace_ipv6(self, match: re.Match[str]) -> str:
        return self._stand_in("address", match[0]) if _is_ipv6(match) else match[0]

    def _replace_uuid(self, match: re.Match[str]) -> str:
        if not match[0].strip("0-"):
            return match[0]
        number = self._stand_in("identifier", match[0].lower()).rpartition("_")[2]
        stand_in = f"00000000-0000-0000-0000-{int(number):012d}"
        self.stand_ins.add(stand_in)
        return stand_in

    def _replace_short_uuid(self, match: re.Match[str]) -> str:
        number = match["number"].lower()
        return match[0] if number in self.stand_ins else match["prefix"] + self._stand_in("identifier", number)


def find_addresses(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the addresses and identifiers in a text: the kind, the start and the end of each."""
    for kind, pattern, is_found in (
        ("mail address", _EMAIL, None), ("user and host", _ACCOUNT, _is_account), ("IP address", _IPV4, _is_ipv4),
        ("IP address", _IPV6, _is_ipv6), ("MAC address", _MAC, None), ("UUID", _UUID, None),
    ):  # fmt: skip
        for match in pattern.finditer(text):
            if is_found is None or is_found(match):
                yield kind, *match.span()


def _is_account(match: re.Match[str]) -> bool:
    """Return whether a match is a user and a host, and not a symbol with its version or a value of a range."""
    user, host = match["user"], match["host"]
    is_generic = user.lower() in GENERIC_NAMES and host.lower() in GENERIC_NAMES
    return not (is_generic or _NO_HOST.fullmatch(host) or user.rstrip("0123456789_").lower() in _RANGE_WORDS)


def _is_ipv6(match: re.Match[str]) -> bool:
    if sum(bool(group) for group in match[0].split(":")) < 3:
        return False
    try:
        ipaddress.IPv6Address(match[0])
    except ValueError:
        return False
    return True


def _is_ipv4(match: re.Match[str]) -> bool:
    """Return whether a match is an address and not a version number."""
    before = match.string[max(match.start() - 20, 0) : match.start()]
    return max(map(int, match[0].split("."))) <= 255 and not _VERSION.search(before)


def _compile_words(words: list[str]) -> re.Pattern[str] | None:
    """Compile a pattern for any of the words, the longest first. Short words do not match inside other words."""
    if not words:
        return None
    return re.compile("|".join(_bound_word(word) for word in sorted(words, key=lambda word: (-len(word), word))))


def _bound_word(word: str) -> str:
    if len(word) >= MIN_VALUE_LENGTH:
        return re.escape(word)
    word_character = r"\w" if len(word) < 6 else "[A-Za-z0-9]"
    before, after = (
        (rf"(?<!{word_character})" if word[0].isalnum() else ""),
        (rf"(?!{word_character})" if word[-1].isalnum() else ""),
    )
    return before + re.escape(word) + after


def describe_counts(counts: Mapping[str, int]) -> str:
    """Write the number of rewritten items of each kind, in words."""
    labels = {
        "environment": "environments", "secret": "secrets", "user": "user names", "host": "host names",
        "folder": "folders", "file": "file names", "address": "addresses", "mail": "mail addresses",
        "identifier": "UUIDs and hashes",
        "value": "values of environment variables", "process": "names of other processes and threads",
    }  # fmt: skip
    return ", ".join(f"{counts[kind]:,} {word}" for kind, word in labels.items() if counts.get(kind))
