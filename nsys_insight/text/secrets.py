"""What of a text looks like a secret: keys as services write them, values by what they are called, random strings."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MASK = "***"
# How keys begin that services give out. What is in a group called `secret` is masked, else all of it.
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
}  # fmt: skip
_FORMATS = {kind: re.compile(pattern) for kind, pattern in FORMATS.items()}
# Most texts have none of these, and so no key of a format that is known.
_HINT = re.compile(
    r"PRIVATE KEY|eyJ|A(?:KIA|SIA|BIA|CCA|Iza)|gh[pousr]_|github_pat_|gl(?:pat|dt|rt|ptt)-|hf_|sk-|nvapi-|xox|[rs]k_"
    r"|npm_|pypi-|dckr_|dapi|@|[Aa](?:uthorization|UTHORIZATION)|[Bb](?:earer|EARER)"
)
# What secrets are called, whatever they are, and what they are called unless they are numbers. A token may be a word of
# a text: it is a secret only alone, or as somebody's.
_WORD_NAME = (
    r"[\w.-]*(?:passw(?:or)?d|passphrase|credentials?|secret)(?:[_-]?(?:key|value|access[_-]?key))?"
    r"|(?:[\w.-]*[_.-])?pwd"
)
_KEY_NAME = (
    r"(?:[\w.-]*[_.-])?(?:api|access|account|auth|encryption|private|shared|signing|ssh|storage|subscription)[_-]?key"
    r"(?:[_-]?id)?"
    r"|(?:[\w.-]*(?:access|api|auth|bearer|bot|client|deploy|gh|github|gitlab|hf|hub|huggingface|id|jwt|login|oauth|refresh"
    r"|security|session|slack|user|vault|wandb)[_-]?)?token|(?:x[_-])?amz[_-]signature|sig"
)
_VALUE = r"(?P<secret>\"[^\"\n]+|'[^'\n]+|[^\s\"'&;,)]+)"
_BEFORE = r"(?i)(?<![\w.-])"
_CALLED = [
    re.compile(rf"{_BEFORE}-{{0,2}}(?:{_WORD_NAME})[\"']?\]?\s*[=:]\s*{_VALUE}"),
    re.compile(rf"{_BEFORE}-{{1,2}}(?:{_WORD_NAME})\s+(?!-){_VALUE}"),
]
_CALLED_KEY = [
    re.compile(rf"{_BEFORE}-{{0,2}}(?:{_KEY_NAME})[\"']?\]?\s*[=:]\s*{_VALUE}"),
    re.compile(rf"{_BEFORE}-{{1,2}}(?:{_KEY_NAME})\s+(?!-){_VALUE}"),
]
_WORD_FLAG, _KEY_FLAG = (re.compile(rf"(?i)-{{1,2}}(?:{name})") for name in (_WORD_NAME, _KEY_NAME))
_CALLED_HINT = re.compile(r"(?i)key|pass|pwd|cred|secret|token|sig")
# What is no secret, whatever it is called: a switch, a mark of a tokenizer, a variable that holds it; and numbers.
_HARMLESS = re.compile(r"(?i)[\"']?(?:true|false|yes|no|on|off|none|null|auto|default|\*+|<.*>?|\[.*\]?|\$.*|[%{(].*|)")
_NUMBER = re.compile(r"(?i)[\"']?[+-]?[\d.]+(?:e[+-]?\d+)?[kmgt]?")
_WORD = re.compile(r"[A-Za-z0-9+]{20,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-f]{32,}|[0-9A-F]{32,})\Z")


class Found(NamedTuple):
    """Something in a text that looks like a secret: what kind it is of, and where it begins and ends."""

    kind: str
    start: int
    end: int


def formats_in(text: str) -> Iterator[Found]:
    """Give the keys of known formats in a text."""
    if _HINT.search(text):
        for kind, pattern in _FORMATS.items():
            group = "secret" if "secret" in pattern.groupindex else 0
            for found in pattern.finditer(text):
                if not _HARMLESS.fullmatch(found[group]):
                    yield Found(kind, *found.span(group))


def named_in(text: str) -> Iterator[Found]:
    """Give the values in a text that are called a password, a key, a token: `--api-key=VALUE`, `TOKEN=VALUE`."""
    if not _CALLED_HINT.search(text):
        return
    for patterns, numbers in ((_CALLED, True), (_CALLED_KEY, False)):
        for found in (found for pattern in patterns for found in pattern.finditer(text)):
            value = found["secret"]
            if not _HARMLESS.fullmatch(value) and (numbers or not _NUMBER.fullmatch(value)):
                start, end = found.span("secret")
                yield Found("named as a secret", start + (value[0] in "\"'"), end)


def random_in(text: str) -> Iterator[Found]:
    """Give the words of a text that look random, as keys do and names do not."""
    for found in _WORD.finditer(text):
        if is_random(found[0]):
            yield Found("looks random", *found.span())


def is_random(word: str) -> bool:
    """Tell whether a word looks random: digits in base 16, or letters and digits of which most differ."""
    if len(word) < 20 or word.isalpha() or word.isdecimal():
        return False
    if _HEX.match(word):
        return entropy(word) > 3
    digits = sum(char.isdecimal() for char in word)
    changes = sum(_class(one) != _class(other) for one, other in pairwise(word))
    return digits >= 2 and changes >= len(word) / 3 and entropy(word) > 3.6


def entropy(word: str) -> float:
    """Shannon's entropy of the characters of a word, in bits a character."""
    return -sum(count / len(word) * log2(count / len(word)) for count in Counter(word).values())


def masked(text: str, *, random: bool = False, stand_in: Callable[[str], str] = lambda _: MASK) -> str:
    """A text without what has the format or the name of a secret, nor, if asked for, what looks random.

    `stand_in` says what stands in the place of each.
    """
    found = [*formats_in(text), *named_in(text), *(random_in(text) if random else ())]
    if not found:
        return text
    pieces, at = [], 0
    for _, start, end in sorted(found, key=lambda one: (one.start, -one.end)):
        if start >= at:
            pieces += [text[at:start], stand_in(text[start:end])]
        at = max(at, end)
    return "".join([*pieces, text[at:]])


def masked_words(words: Sequence[str], *, stand_in: Callable[[str], str] = lambda _: MASK) -> list[str]:
    """A command line with a mask, or a `stand_in`, for each argument, or part of one, that looks like a secret."""
    shown = [masked(word, random=True, stand_in=stand_in) for word in words]
    for at, (word, value) in enumerate(pairwise(words), 1):
        if value.startswith("-") or _HARMLESS.fullmatch(value):
            continue
        if _WORD_FLAG.fullmatch(word) or (_KEY_FLAG.fullmatch(word) and not _NUMBER.fullmatch(value)):
            shown[at] = stand_in(value)
    return shown


def _class(char: str) -> str:
    return "0" if char.isdecimal() else "a" if char.islower() else "A" if char.isupper() else char
