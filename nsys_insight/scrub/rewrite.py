"""Replace what is private in a text: each name, path and address gets the same stand-in everywhere."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from nsys_insight.scrub.sensitive import LEAST_LENGTH, is_environment
from nsys_insight.text.secrets import masked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nsys_insight.scrub.sensitive import Sensitive

# The first folders of paths on any machine; a name such as /encoder/layer.0/MatMul is no path.
_ROOTS = frozenset(
    """Applications Library System Users Volumes afs apps bin boot cluster common data dev etc global gpfs home lib
    lib32 lib64 lustre media mnt net nfs opt p private proc project projects pscratch root run sbin scratch snap
    software srv sys tmp u usr var work workspace""".split()  # noqa: SIM905 - easier to read than a list
)
_FILE = (
    r"\.(?:so[\d.]*|dll|exe|py[cdix]?|ipynb|sh|c|cc|cpp|cxx|h|hh|hpp|cu|cuh|ptx|cubin|f|f90|rs|go|jl|js|ts|lua|java|jar"
    r"|txt|log|md|json|ya?ml|toml|ini|cfg|conf|csv|xml|html?|sqlite|db|nsys-rep|qdrep|ncu-rep|bin|dat|npy|npz|pt|pth"
    r"|onnx|safetensors|gguf|ckpt|h5|hdf5|parquet|arrow|tar|gz|zip|zst|pem|key|crt|sock|pid|lock)"
)
_SUFFIX = re.compile(rf"{_FILE}\Z")
_LIBRARY = re.compile(
    r"(?:lib|ld-)[\w.+-]*\.so[\d.]*|[\w.-]+\.dll|python[\d.]*|\[?(?:vdso|vsyscall|kernel\.kallsyms)\]?"
)
_PATH = re.compile(
    r"(?:(?<=file://)|(?<![\w./~\\-]))/(?!/)[^\s\"'`<>|:;,()\[\]{}=&?*#\0]*[^\s\"'`<>|:;,()\[\]{}=&?*#\0.!]"
)
_TILDE = re.compile(r"(?<![\w/~.])~[\w.-]*/[^\s\"'`<>|:;,()\0]+")
_DRIVE = re.compile(r"(?<!\w)(?:[A-Za-z]:[\\/]|\\\\[\w.$-]+\\)[^\s\"'`<>|:;,*?\0]+")
_HOST_OF_ADDRESS = re.compile(r"(?<=://)(?:[^\s/?#@\"'<>]*@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s/?#:@\"'<>,;)]+)")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")
_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9a-fA-F:.]*\d)[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
_MAC = re.compile(r"(?<![\w:-])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![\w:-])")
_UUID = re.compile(r"(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])")
# What a library's build is known by, and what nsys names its debug symbols.
_HASH = re.compile(r"[0-9a-fA-F]{30,}(?:\.debug)?")
_VERSION = re.compile(r"(?i)(?:version|\bv|driver|release|\.so\.|-)\s*:?\s*\Z")
_STAND_IN = re.compile(r"(?:user|host|address|mail|value|secret|process|folder|file)_\d+")
# Longest text whose result is cached: NVTX texts repeat in many rows.
_SHORT = 1_000


class Rewriter:
    """Rewrites texts, and remembers the stand-ins.

    `counts` says how many different users, hosts, paths and so on were rewritten.

    Args:
        sensitive: Words to look for; paths, addresses and such are recognized by their form.
        key: Names of kernels are replaced by what this key makes of them; None leaves them.
    """

    def __init__(self, sensitive: Sensitive, key: bytes | None = None) -> None:
        """Nothing has been rewritten."""
        self._sensitive, self._key = sensitive, key
        self._stand_ins: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}
        self._roots = _ROOTS | sensitive.roots
        # Where a name is a word of many texts, an underscore is a part of words.
        self._names = _any_of([*sensitive.users, *sensitive.hosts])
        self._values = _any_of([value for value in sensitive.values if not value.startswith(("/", "~"))])
        self._remembered = lru_cache(50_000)(self._rewritten)

    def text(self, text: str) -> str:
        """A text without what is private."""
        return self._remembered(text) if len(text) <= _SHORT else self._rewritten(text)

    def _rewritten(self, text: str) -> str:
        whole = self._whole(text)
        return self._parts(text) if whole is None else whole

    def _whole(self, text: str) -> str | None:
        """What a text becomes that is private as a whole."""
        if is_environment(text):
            self._stand_in("environment", text)
            return ""
        if text in self._sensitive.printed:
            return ""
        if self._key is not None and text in self._sensitive.kernels:
            return (
                "kernel_"
                + hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:16]
            )
        if text in self._sensitive.others:
            return self._stand_in("process", text)
        if _HASH.fullmatch(text):
            return self._stand_in("identifier", text)
        return None

    def _parts(self, text: str) -> str:
        is_symbol = text in self._sensitive.kernels or text in self._sensitive.calls
        text = masked(text, stand_in=lambda secret: self._stand_in("secret", secret))
        if "@" in text:
            text = _EMAIL.sub(lambda found: self._stand_in("mail", found[0]), text)
        if "://" in text:
            text = _HOST_OF_ADDRESS.sub(self._host_of_address, text)
        if "/" in text or "\\" in text:
            for pattern in (_PATH, _TILDE, _DRIVE):
                text = pattern.sub(lambda found: self._path(found[0]), text)
        text = self._addresses(text)
        if self._values is not None and not is_symbol:
            text = self._values.sub(lambda found: self._stand_in("value", found[0]), text)
        if self._names is not None:
            text = self._names.sub(lambda found: self._name(found[0], is_symbol=is_symbol), text)
        return text

    def _addresses(self, text: str) -> str:
        if text.count(".") >= 3:
            text = _IPV4.sub(self._ipv4, text)
        if text.count(":") >= 2:
            text = _MAC.sub(lambda found: self._stand_in("address", found[0]), text)
            text = _IPV6.sub(self._ipv6, text)
        if text.count("-") >= 4:
            text = _MAC.sub(lambda found: self._stand_in("address", found[0]), text)
            text = _UUID.sub(self._uuid, text)
        return text

    def _stand_in(self, kind: str, text: str) -> str:
        made = self._stand_ins.get((kind, text))
        if made is None:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            made = self._stand_ins[kind, text] = f"{kind}_{self.counts[kind]}"
        return made

    def _name(self, name: str, *, is_symbol: bool) -> str:
        if is_symbol and len(name) < 5:
            return name
        return self._stand_in("user" if name in self._sensitive.users else "host", name)

    def _host_of_address(self, found: re.Match[str]) -> str:
        host = found["host"]
        if host in ("localhost", "127.0.0.1") or _STAND_IN.fullmatch(host) or host == "***":
            return found[0]
        return self._stand_in("host", host)

    def _path(self, path: str) -> str:
        own = self._sensitive.folder
        if own and (path == own or path.startswith((f"{own}/", f"{own}\\"))):
            return "/program" + path[len(own) :]
        is_path = path[0] != "/" or path.split("/")[1] in self._roots or _SUFFIX.search(path)
        if not is_path or re.match(r"/(?:folder_\d+|program)(?:/|\Z)", path):
            return path
        folder, mark, name = path.rpartition("\\" if "\\" in path else "/")
        shown = name if _LIBRARY.fullmatch(name) or not name else self._stand_in("file", name)
        if not shown.startswith("lib") and (suffix := _SUFFIX.search(name)) and shown != name:
            shown += suffix[0]
        return f"/{self._stand_in('folder', folder)}{'/' if mark else ''}{shown}"

    def _ipv4(self, found: re.Match[str]) -> str:
        return self._stand_in("address", found[0]) if _is_ipv4(found) else found[0]

    def _ipv6(self, found: re.Match[str]) -> str:
        if sum(bool(group) for group in found[0].split(":")) < 3:
            return found[0]
        try:
            ipaddress.IPv6Address(found[0])
        except ValueError:
            return found[0]
        return self._stand_in("address", found[0])

    def _uuid(self, found: re.Match[str]) -> str:
        if not found[0].strip("0-"):
            return found[0]
        number = self._stand_in("identifier", found[0].lower()).rpartition("_")[2]
        return f"00000000-0000-0000-0000-{int(number):012d}"


def addresses_in(text: str) -> Iterator[tuple[str, int, int]]:
    """Give the addresses in a text: what each looks like, and where it begins and ends."""
    for kind, pattern in (("mail address", _EMAIL), ("IP address", _IPV4), ("MAC address", _MAC)):
        for found in pattern.finditer(text):
            if pattern is not _IPV4 or _is_ipv4(found):
                yield kind, *found.span()


def _is_ipv4(found: re.Match[str]) -> bool:
    """Tell an address from the number of a version."""
    before = found.string[max(found.start() - 20, 0) : found.start()]
    return max(map(int, found[0].split("."))) <= 255 and not _VERSION.search(before)


def _any_of(words: list[str]) -> re.Pattern[str] | None:
    """A pattern for any of some words, the longest first. Short words do not match inside of other words."""
    if not words:
        return None
    return re.compile("|".join(_bounded(word) for word in sorted(words, key=lambda word: (-len(word), word))))


def _bounded(word: str) -> str:
    if len(word) >= LEAST_LENGTH:
        return re.escape(word)
    part = r"\w" if len(word) < 6 else "[A-Za-z0-9]"
    before, after = (rf"(?<!{part})" if word[0].isalnum() else ""), (rf"(?!{part})" if word[-1].isalnum() else "")
    return before + re.escape(word) + after


def counted(counts: Mapping[str, int]) -> str:
    """How many of each were rewritten, in words."""
    words = {
        "environment": "environments", "secret": "secrets", "user": "user names", "host": "host names",
        "folder": "folders", "file": "file names", "address": "addresses", "mail": "mail addresses",
        "identifier": "UUIDs and hashes",
        "value": "values of environment variables", "process": "names of other processes and threads",
    }  # fmt: skip
    return ", ".join(f"{counts[kind]:,} {word}" for kind, word in words.items() if counts.get(kind))
