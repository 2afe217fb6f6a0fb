"""Find secrets in text: keys in the formats of known services, values with a telling name, and random strings."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MASK = "***"
# The formats of keys, by service. The group `secret` is masked; without this group, the full match is.
FORMATS = {
    "private key": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    "JSON web token": r"\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?",
    "AWS key": r"\bA(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{22,})",
    "GitLab token": r"\bgl(?:pat|dt|rt|ptt)-[\w-]{20,}",
    "Hugging Face token": r"\bhf_[A-Za-z0-9]{16,}",
    "sk- key": r"\bsk-[\w-]{16,}",
    "NVIDIA key": r"\bnvapi-[\w-]{16,}",
    "Slack token": r"\bxox[abeoprs]-[\w-]{10,}",
    "Google key": r"\bAIza[\w-]{30,}",
    "Stripe key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    "package registry token": r"\b(?:npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|dckr_pat_[\w-]{20,})",
    "Databricks token": r"\bdapi[0-9a-f]{32}\b",
    "credentials in an address": r"\b[a-z][a-z0-9+.-]*://(?P<secret>[^\s/?#@'\"]+)@",
    "authorization": (
        r"(?i)\b(?:authorization\s*[:=]\s*(?:(?:bearer|basic|token)\s+)?|bearer\s+)(?P<secret>[\w.~+/=-]{8,})"
    ),
    "cookie": r"(?i)\b(?:set-)?cookie\s*:\s*(?P<secret>[^\r\n'\"]+)",
    "password of curl": (
        r"\bcurl\b[^|;&\r\n]*?\s(?:-u|-U|--user|--proxy-user)[\s=]*['\"]?(?P<secret>[^\s'\":-][^\s'\":]*:[^\s'\"]+)"
    ),
    "password of sshpass": (
        r"\bsshpass\s+(?:-[a-oq-z]\s*\S*\s+)*-p\s*['\"]?(?P<secret>(?<=')[^'\n]+|(?<=\")[^\"\n]+|[^\s'\"]+)"
    ),
    "password of mysql": r"\bmysql(?:dump|admin)?\b[^|;&\r\n]*?\s-p(?P<secret>[^\s'\"]+)",
}  # fmt: skip
_FORMATS = {kind: re.compile(pattern) for kind, pattern in FORMATS.items()}
# Texts without any of these have no key in a known format. Most texts are like this.
_FORMAT_HINT = re.compile(
    r"PRIVATE KEY|eyJ|A(?:KIA|SIA|BIA|CCA|Iza)|gh[pousr]_|github_pat_|gl(?:pat|dt|rt|ptt)-|hf_|sk-|nvapi-|xox|[rs]k_"
    r"|[Cc]ookie|COOKIE|curl|sshpass|mysql|npm_|pypi-|dckr_|dapi|@|[Aa](?:uthorization|UTHORIZATION)|[Bb](?:earer|EARER)"
)
# Names of secrets. Values with a word name (`_WORD_NAME`) are secrets; values with a key name (`_KEY_NAME`) are secrets
# unless they are numbers. A token can be a word of a text: only "token" alone, or with a prefix, names a secret.
_WORD_NAME = (
    r"[\w.-]*(?:passw(?:or)?d|passphrase|credentials?|secret)(?:[_-]?(?:key|value|access[_-]?key))?"
    r"|(?:[\w.-]*[_.-])?(?:pwd|creds)|(?:[\w.-]*[_.-])?(?:admin|auth|db|database|ftp|http|https|login|mail|mongo|mysql|pg"
    r"|postgres|proxy|redis|root|smtp|sql|ssh|user|vault)[_.-]?pass"
)
_KEY_NAME = (
    r"(?:[\w.-]*[_.-])?(?:api|access|account|auth|encryption|private|shared|signing|ssh|storage|subscription)[_-]?key"
    r"(?:[_-]?id)?"
    r"|(?:[\w.-]*[_.-])?pass|(?:http[_-]?|session[_-]?)?cookies?(?:[_-]jar)?"
    r"|(?:[\w.-]*(?:access|api|auth|bearer|bot|client|deploy|gh|github|gitlab|hf|hub|huggingface|id|jwt|login|oauth|refresh"
    r"|security|session|slack|user|vault|wandb)[_-]?)?token|(?:x[_-])?amz[_-]signature|sig"
)
_VALUE = r"(?P<secret>\"[^\"\n]+|'[^'\n]+|[^\s\"'&;,)]+)"
_BEFORE = r"(?i)(?<![\w.-])"
_NAMED_VALUES = [
    re.compile(rf"{_BEFORE}-{{0,2}}(?:{_WORD_NAME})[\"']?\]?\s*[=:]\s*{_VALUE}"),
    re.compile(rf"{_BEFORE}-{{1,2}}(?:{_WORD_NAME})\s+(?!-){_VALUE}"),
]
_NAMED_KEY_VALUES = [
    re.compile(rf"{_BEFORE}-{{0,2}}(?:{_KEY_NAME})[\"']?\]?\s*[=:]\s*{_VALUE}"),
    re.compile(rf"{_BEFORE}-{{1,2}}(?:{_KEY_NAME})\s+(?!-){_VALUE}"),
]
_WORD_FLAG, _KEY_FLAG = (re.compile(rf"(?i)-{{1,2}}(?:{name})") for name in (_WORD_NAME, _KEY_NAME))
_NAME_HINT = re.compile(r"(?i)key|pass|pwd|cred|secret|token|sig|cookie")
# Values that are never secrets, with any name: a switch, a special token of a tokenizer, a variable. Then numbers.
_HARMLESS = re.compile(r"(?i)[\"']?(?:true|false|yes|no|on|off|none|null|auto|default|\*+|<.*>?|\[.*\]?|\$.*|[%{(].*|)")
_NUMBER = re.compile(r"(?i)[\"']?[+-]?[\d.]+(?:e[+-]?\d+)?[kmgt]?")
# Flags of programs whose value is, or contains, a password; and programs that take it only in the same word.
_PASSWORD_FLAGS = {
    "curl": (("--user", "--proxy-user", "-u", "-U"), r"[^:]+:.+"),
    "sshpass": (("-p",), r".+"),
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin"), (("-p",), r".+")),
}
_ATTACHED_ONLY = frozenset({"mysql", "mysqldump", "mysqladmin"})
_WORD = re.compile(r"[A-Za-z0-9+]{20,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-f]{32,}|[0-9A-F]{32,})\Z")


class SecretSpan(NamedTuple):
    """A span of a text that looks like a secret: its kind, start and end."""

    kind: str
    start: int
    end: int


def find_known_formats(text: str) -> Iterator[SecretSpan]:
    """Find the keys with a known format in a text."""
    if _FORMAT_HINT.search(text):
        for kind, pattern in _FORMATS.items():
            group = "secret" if "secret" in pattern.groupindex else 0
            for match in pattern.finditer(text):
                if not _HARMLESS.fullmatch(match[group]):
                    yield SecretSpan(kind, *match.span(group))


def find_named_secrets(text: str) -> Iterator[SecretSpan]:
    """Find the values in a text whose name is that of a secret: `--api-key=VALUE`, `TOKEN=VALUE`."""
    if not _NAME_HINT.search(text):
        return
    for patterns, can_be_number in ((_NAMED_VALUES, True), (_NAMED_KEY_VALUES, False)):
        for match in (match for pattern in patterns for match in pattern.finditer(text)):
            value = match["secret"]
            if not _HARMLESS.fullmatch(value) and (can_be_number or not _NUMBER.fullmatch(value)):
                start, end = match.span("secret")
                yield SecretSpan("named as a secret", start + (value[0] in "\"'"), end)


def find_random_words(text: str) -> Iterator[SecretSpan]:
    """Find the words of a text that look random, as keys do and names do not."""
    for match in _WORD.finditer(text):
        if is_random(match[0]):
            yield SecretSpan("looks random", *match.span())


def is_random(word: str) -> bool:
    """Check whether a word looks random: hexadecimal digits or mixed letters and digits, with high entropy."""
    if len(word) < 20 or word.isalpha() or word.isdecimal():
        return False
    if _HEX.match(word):
        return compute_entropy(word) > 3
    digits = sum(char.isdecimal() for char in word)
    changes = sum(_classify_char(char) != _classify_char(next_char) for char, next_char in pairwise(word))
    return digits >= 2 and changes >= len(word) / 3 and compute_entropy(word) > 3.6


def compute_entropy(word: str) -> float:
    """Compute the Shannon entropy of a word's characters, in bits per character."""
    return -sum(count / len(word) * log2(count / len(word)) for count in Counter(word).values())


def mask_secrets(text: str, *, include_random: bool = False, replace: Callable[[str], str] = lambda _: MASK) -> str:
    """Mask everything in a text with the format or name of a secret and, with `include_random`, random words.

    `replace` returns the replacement of each secret.
    """
    spans = [*find_known_formats(text), *find_named_secrets(text), *(find_random_words(text) if include_random else ())]
    if not spans:
        return text
    pieces, position = [], 0
    for _, start, end in sorted(spans, key=lambda span: (span.start, -span.end)):
        if start >= position:
            pieces += [text[position:start], replace(text[start:end])]
        position = max(position, end)
    return "".join([*pieces, text[position:]])


def mask_arguments(words: Sequence[str], *, replace: Callable[[str], str] = lambda _: MASK) -> list[str]:
    """Mask each argument of a command line, or the part of it, that looks like a secret; `replace` is as above."""
    masked = [mask_secrets(word, include_random=True, replace=replace) for word in words]
    for index, start in _find_passwords(words):
        masked[index] = words[index][:start] + replace(words[index][start:])
    for index, (word, value) in enumerate(pairwise(words), 1):
        if value.startswith("-") or _HARMLESS.fullmatch(value):
            continue
        if _WORD_FLAG.fullmatch(word) or (_KEY_FLAG.fullmatch(word) and not _NUMBER.fullmatch(value)):
            masked[index] = replace(value)
    return masked


def _find_passwords(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find the arguments that a known program takes for a password: their index, and where in them it begins."""
    for name, (flags, pattern) in _PASSWORD_FLAGS.items():
        programs = [index for index, word in enumerate(words) if word.rpartition("/")[2] == name]
        for index in range(programs[0] + 1, len(words)) if programs else ():
            flag = next((flag for flag in flags if words[index].startswith(flag)), "")
            if flag and len(words[index]) > len(flag):
                start = len(flag) + words[index][len(flag) :].startswith("=")
                if re.fullmatch(pattern, words[index][start:]):
                    yield index, start
            elif flag and name not in _ATTACHED_ONLY and re.fullmatch(pattern, "".join(words[index + 1 : index + 2])):
                yield index + 1, 0


def _classify_char(char: str) -> str:
    return "0" if char.isdecimal() else "a" if char.islower() else "A" if char.isupper() else char
