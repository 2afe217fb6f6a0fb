"""Replace private data in texts. Each name, path and address gets the same stand-in everywhere."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from nsys_insight.scrub.sensitive import MIN_VALUE_LENGTH, is_environment
from nsys_insight.text.secrets import mask_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nsys_insight.scrub.sensitive import Sensitive

# The first folders of paths on any machine. They distinguish paths from names such as /encoder/layer.0/MatMul.
_ROOTS = frozenset(
    """Applications Library System Users Volumes afs apps bin boot cluster common data dev etc global gpfs home lib
    lib32 lib64 lustre media mnt net nfs opt p private proc project projects pscratch root run sbin scratch snap
    software srv sys tmp u usr var work workspace""".split()  # noqa: SIM905 - easier to read than a list
)
_FILE_SUFFIXES = (
    r"\.(?:so[\d.]*|dll|exe|py[cdix]?|ipynb|sh|c|cc|cpp|cxx|h|hh|hpp|cu|cuh|ptx|cubin|f|f90|rs|go|jl|js|ts|lua|java|jar"
    r"|txt|log|md|json|ya?ml|toml|ini|cfg|conf|csv|xml|html?|sqlite|db|nsys-rep|qdrep|ncu-rep|bin|dat|npy|npz|pt|pth"
    r"|onnx|safetensors|gguf|ckpt|h5|hdf5|parquet|arrow|tar|gz|zip|zst|pem|key|crt|sock|pid|lock)"
)
_SUFFIX = re.compile(rf"{_FILE_SUFFIXES}\Z")
_LIBRARY = re.compile(
    r"(?:lib|ld-)[\w.+-]*\.so[\d.]*|[\w.-]+\.dll|python[\d.]*|\[?(?:vdso|vsyscall|kernel\.kallsyms)\]?"
)
_PATH = re.compile(
    r"(?:(?<=file://)|(?<![\w./~\\-]))/(?!/)[^\s\"'`<>|:;,()\[\]{}=&?*#\0]*[^\s\"'`<>|:;,()\[\]{}=&?*#\0.!]"
)
_TILDE = re.compile(r"(?<![\w/~.])~[\w.-]*/[^\s\"'`<>|:;,()\0]+")
_DRIVE = re.compile(r"(?<!\w)(?:[A-Za-z]:[\\/]|\\\\[\w.$-]+\\)[^\s\"'`<>|:;,*?\0]+")
_URL_HOST = re.compile(r"(?<=://)(?:[^\s/?#@\"'<>]*@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s/?#:@\"'<>,;)]+)")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")
_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9a-fA-F:.]*\d)[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
_MAC = re.compile(r"(?<![\w:-])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![\w:-])")
_UUID = re.compile(r"(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])")
# Build ids of libraries, also as names of debug symbol files of nsys.
_HASH = re.compile(r"[0-9a-fA-F]{30,}(?:\.debug)?")
_VERSION = re.compile(r"(?i)(?:version|\bv|driver|release|\.so\.|-)\s*:?\s*\Z")
_STAND_IN = re.compile(r"(?:user|host|address|mail|value|secret|process|folder|file)_\d+")
# Maximum length of a text whose result is cached: NVTX texts repeat in many rows.
_MAX_CACHED_LENGTH = 1_000


class Rewriter:
    """Rewrites texts, and stores the stand-ins.

    `counts` has the number of distinct users, hosts, paths and so on that were rewritten.

    Args:
        sensitive: Words to look for. Paths, addresses and the like are recognized by their form.
        key: Key to hash the names of kernels with. None leaves the names unchanged.
    """

    def __init__(self, sensitive: Sensitive, key: bytes | None = None) -> None:
        """Start without stand-ins."""
        self._sensitive, self._key = sensitive, key
        self._stand_ins: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}
        self._roots = _ROOTS | sensitive.roots
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
            text = _URL_HOST.sub(self._replace_url_host, text)
        if "/" in text or "\\" in text:
            for pattern in (_PATH, _TILDE, _DRIVE):
                text = pattern.sub(lambda match: self._replace_path(match[0]), text)
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
        return text

    def _stand_in(self, kind: str, text: str) -> str:
        stand_in = self._stand_ins.get((kind, text))
        if stand_in is None:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            stand_in = self._stand_ins[kind, text] = f"{kind}_{self.counts[kind]}"
        return stand_in

    def _replace_name(self, name: str, *, is_symbol: bool) -> str:
        if is_symbol and len(name) < 5:
            return name
        return self._stand_in("user" if name in self._sensitive.users else "host", name)

    def _replace_url_host(self, match: re.Match[str]) -> str:
        host = match["host"]
        if host in ("localhost", "127.0.0.1") or _STAND_IN.fullmatch(host) or host == "***":
            return match[0]
        return self._stand_in("host", host)

    def _replace_path(self, path: str) -> str:
        program_folder = self._sensitive.folder
        if program_folder and (
            path == program_folder or path.startswith((f"{program_folder}/", f"{program_folder}\\"))
        ):
            return "/program" + path[len(program_folder) :]
        is_path = path[0] != "/" or path.split("/")[1] in self._roots or _SUFFIX.search(path)
        if not is_path or re.match(r"/(?:folder_\d+|program)(?:/|\Z)", path):
            return path
        folder, separator, name = path.rpartition("\\" if "\\" in path else "/")
        new_name = name if _LIBRARY.fullmatch(name) or not name else self._stand_in("file", name)
        if not new_name.startswith("lib") and (suffix := _SUFFIX.search(name)) and new_name != name:
            new_name += suffix[0]
        return f"/{self._stand_in('folder', folder)}{'/' if separator else ''}{new_name}"

    def _replace_ipv4(self, match: re.Match[str]) -> str:
        return self._stand_in("address", match[0]) if _is_ipv4(match) else match[0]

    def _replace_ipv6(self, match: re.Match[str]) -> str:
        if sum(bool(group) for group in match[0].split(":")) < 3:
            return match[0]
        try:
            ipaddress.IPv6Address(match[0])
        except ValueError:
            return match[0]
        return self._stand_in("address", match[0])

    def _replace_uuid(self, match: re.Match[str]) -> str:
        if not match[0].strip("0-"):
            return match[0]
        number = self._stand_in("identifier", match[0].lower()).rpartition("_")[2]
        return f"00000000-0000-0000-0000-{int(number):012d}"


def find_addresses(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the addresses in a text: the kind, the start and the end of each."""
    for kind, pattern in (("mail address", _EMAIL), ("IP address", _IPV4), ("MAC address", _MAC)):
        for match in pattern.finditer(text):
            if pattern is not _IPV4 or _is_ipv4(match):
                yield kind, *match.span()


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
