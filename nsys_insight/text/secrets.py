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
# Programs with a command login, whose -p is a password.
_LOGIN_PROGRAMS = ("docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras", "crane", "az", "oc")
_ONE_WORD = r"['\"]?(?P<secret>(?<=')[^'\n]+|(?<=\")[^\"\n]+|[^\s'\"-][^\s'\"]*)"
_NO_PORT = r"(?!['\"]?[\d.:/-]+(?:tcp|udp)?(?:['\"\s]|\Z))"
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
    "password of mysql": r"\b(?:mysql|mariadb)(?:-?dump|admin)?\b[^|;&\r\n]*?\s-p(?P<secret>[^\s'\"]+)",
    "password of a registry": (
        rf"(?<![\w-])(?:{'|'.join(_LOGIN_PROGRAMS)})\s(?:[^|;&\r\n]*?\s)?login\s(?:[^|;&\r\n]*?\s)?-p[\s=]*{_ONE_WORD}"
    ),
    "password of mongo": rf"\b(?:mongo(?:sh|dump|restore)?|cqlsh)\s(?:[^|;&\r\n]*?\s)?-p[\s=]+{_ONE_WORD}",
    "password of redis-cli": rf"\bredis-cli\s(?:[^|;&\r\n]*?\s)?-a[\s=]+{_ONE_WORD}",
    "password of sqlcmd": rf"\b(?:sqlcmd|bcp|(?:un)?zip)\s(?:[^|;&\r\n]*?\s)?-P[\s=]*{_ONE_WORD}",
    "password of ldapsearch": rf"\bldap(?:search|modify|add)\s(?:[^|;&\r\n]*?\s)?-w[\s=]+{_ONE_WORD}",
    "password of openssl": r"(?<![\w-])-pass(?:in|out)?[\s=]+['\"]?pass:(?P<secret>[^\s'\"]+)",
    "password of a user": (
        rf"(?<![\w-])(?:-[uU]|--user(?:name)?|--login)[\s=]+['\"]?[^\s'\"-][^\s'\"]*['\"]?\s+-[pP][\s=]+{_NO_PORT}{_ONE_WORD}"
    ),
    "password before its user": rf"(?<![\w-])-[pP][\s=]+{_NO_PORT}{_ONE_WORD}['\"]?\s+-[uU]\s+[^\s'\"-]",
}  # fmt: skip
# Texts without any of these have no key in a known format. Most texts are like this.
_FORMAT_HINT = re.compile(
    r"PRIVATE KEY|eyJ|A(?:KIA|SIA|BIA|CCA|Iza)|gh[pousr]_|github_pat_|gl(?:pat|dt|rt|ptt)-|hf_|sk-|nvapi-|xox|[rs]k_"
    r"|[Cc]ookie|COOKIE|npm_|pypi-|dckr_|dapi|@|[Aa](?:uthorization|UTHORIZATION)|[Bb](?:earer|EARER)"
)
# The same for passwords in the arguments of a program.
_ARGUMENT_HINT = re.compile(r"-(?:[pPaw][\s=]|pass|U)|login|curl|sshpass|mysql|mariadb|sqlcmd|bcp|zip")
# Names of secrets. Values with a word name (`_WORD_NAME`) are secrets; values with a key name (`_KEY_NAME`) are secrets
# unless they are numbers. A token can be a word of a text: only "token" alone, or with a prefix, names a secret.
_WORD_NAME = (
    r"[\w.-]*(?:passw(?:or)?ds?|passphrase|passcode|pwd|credentials?|secret)(?:[_-]?(?:key|value|access[_-]?key))?"
    r"|(?:[\w.-]*[_.-])?(?:creds|pswd|psw)"
    r"|(?:[\w.-]*[_.-])?(?:admin|auth|db|database|ftp|http|https|login|mail|mongo|mysql|pg"
    r"|postgres|proxy|redis|root|smtp|sql|ssh|user|vault)[_.-]?pass"
)
_KEY_NAME = (
    r"(?:[\w.-]*[_.-])?(?:activation|api|access|account|app|application|auth|client|consumer|crypto?|deploy|encryption"
    r"|decryption|gpg|hmac|license|licence|master|pgp|private|product|rsa|serial|service|session|shared|signing|ssh|ssl"
    r"|storage|subscription|tls|webhook|anthropic|azure|comet|datadog|google|hf|ngc|openai|stripe|wandb)[_-]?key(?:[_-]?id)?"
    r"|(?:[\w.-]*[_.-])?(?:pass|pw|passkey|otp|jwt|(?:basic|rediscli)[_-]?auth)|_auth|(?:http[_-]?|session[_-]?)?cookies?(?:[_-]jar)?"
    r"|(?:[\w.-]*(?:access|api|auth|bearer|bot|client|deploy|gh|github|gitlab|hf|hub|huggingface|id|jwt|login|oauth|refresh"
    r"|npm|pypi|registry|security|session|slack|user|vault|wandb)[_.-]?)?token"
    r"|(?:x[_-])?amz[_-]signature|sig"
)
# Also with quotes that are escaped. A comma or an ampersand ends a value before another name.
_VALUE = (
    r"(?P<secret>\\\"(?:(?!\\\")[^\n])+|\\'(?:(?!\\')[^\n])+|\"(?:\\.|[^\"\n\\])+|'(?:\\.|[^'\n\\])+"
    r"|(?:[^\s\"'&;,)\\]|\\(?![\"'])|[&;,)](?=[^\s\"'&;,)=:\]}])(?![\w.-]+[\"']?\s*[=:]))+)"
)
_BEFORE = r"(?i)(?<![\w.-])"
# XML: <password>VALUE</password>, <add key="password" value="VALUE"/>.
_ELEMENT = r"<(?i:(?:[\w.-]{0,64}:)?(?:NAME)(?:\s[^<>]{0,200})?>\s*(?:<!\[CDATA\[)?(?P<secret>[^<\]]+))"
_ATTRIBUTE = r"<(?i:[^<>]{0,200}\s(?:key|name|id)\s*=\s*[\"'](?:NAME)[\"']\s+value\s*=\s*(?P<secret>\"[^\"]+|'[^']+))"


def _compile_named(name: str) -> tuple[list[re.Pattern[str]], list[re.Pattern[str]]]:
    """Compile the patterns of values with a name: those of any text, and those of XML."""
    of_any_text = [
        rf"{_BEFORE}-{{0,2}}(?:{name})[\"']?\]?\s*[=:]\s*{_VALUE}",
        rf"{_BEFORE}-{{1,2}}(?:{name})\s+(?!-){_VALUE}",
    ]
    of_xml = [_ELEMENT.replace("NAME", name), _ATTRIBUTE.replace("NAME", name)]
    return list(map(re.compile, of_any_text)), list(map(re.compile, of_xml))


# With whether a number can be a secret.
_NAMED_VALUES = [(*_compile_named(_WORD_NAME), True), (*_compile_named(_KEY_NAME), False)]
_WORD_FLAG, _KEY_FLAG = (re.compile(rf"(?i)-{{1,2}}(?:{name})") for name in (_WORD_NAME, _KEY_NAME))
_SECRET_FLAG = re.compile(rf"(?i)-{{1,2}}(?:(?P<word>{_WORD_NAME})|{_KEY_NAME})=")
_NAME_HINT = re.compile(r"(?i)key|pass|pwd|psw|cred|secret|token|sig|cookie|otp|jwt|auth|pw\b")
# Values that are never secrets, with any name: a switch, a special token of a tokenizer, a variable. Then numbers.
_HARMLESS = re.compile(r"(?i)[\"']?(?:true|false|yes|no|on|off|none|null|auto|default|\*+|<.*>?|\[.*\]?|\$.*|[%{(].*|)")
_NUMBER = re.compile(r"(?i)[\"']?[+-]?[\d.]+(?:e[+-]?\d+)?[kmgt]?")
# The variables PWD and OLDPWD of a shell name folders.
_FOLDER_NAME = re.compile(r"(?i)(?<![\w.-])(?:OLD|C)?PWD[\"']?\]?\s*[=:]?\s*\Z")
_FOLDER = re.compile(r"[\\\"']{0,2}(?:[/~.$]|[A-Za-z]:[\\/])")
# Flags of programs whose value is, or contains, a password; and programs that take it only in the same word.
_PASSWORD_FLAGS = {
    "curl": (("--user", "--proxy-user", "-u", "-U"), r"[^:]+:.+"),
    "sshpass": (("-p",), r".+"),
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump"), (("-p",), r".+")),
    **dict.fromkeys(_LOGIN_PROGRAMS, (("-p",), r".+")),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore", "cqlsh"), (("-p",), r".+")),
    **dict.fromkeys(("sqlcmd", "bcp", "zip", "unzip"), (("-P",), r".+")),
    **dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd"), (("-w",), r".+")),
    **dict.fromkeys(("7z", "7za", "rar", "unrar"), (("-p",), r".+")),
    "redis-cli": (("-a",), r".+"),
    "smbclient": (("-U",), r"[^%]+%.+"),
    "lftp": (("-u",), r"[^,]+,.+"),
    "http": (("-a", "--auth"), r"[^:]+:.+"),
    "openssl": (("-passin", "-passout", "-pass"), r"pass:.+"),
}
_ATTACHED_ONLY = frozenset({"mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "7z", "7za", "rar", "unrar"})
# A user and a password for any program: -u USER -p PASSWORD. Ports and programs that select by user are not.
_USER_FLAG = re.compile(r"(?:-[uU]|--user(?:name)?|--login)(?P<value>=.+)?")
_SELECTS_USER = re.compile(
    r"(?<![\w-])(?:s(?:queue|acct|cancel|info|prio|stat|share|report)|ssh|python[\d.]*)\s(?:-\S+\s+)*\Z"
)
_PORTS = re.compile(r"[\d.:/-]+(?:tcp|udp)?")
_WORD = re.compile(r"[A-Za-z0-9+]{20,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-f]{32,}|[0-9A-F]{32,})\Z")


class SecretSpan(NamedTuple):
    """A span of a text that looks like a secret: its kind, start and end."""

    kind: str
    start: int
    end: int


def find_known_formats(text: str) -> Iterator[SecretSpan]:
    """Find the keys with a known format in a text."""
    has_key, has_argument = _FORMAT_HINT.search(text), _ARGUMENT_HINT.search(text)
    for kind, expression in FORMATS.items() if has_key or has_argument else ():
        if not (has_argument if kind.startswith("password ") else has_key):
            continue
        pattern = re.compile(expression)  # here, and not for all texts: most have no key
        group = "secret" if "secret" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            is_selection = kind == "password of a user" and _SELECTS_USER.search(text[: match.start()])
            if not is_selection and not _HARMLESS.fullmatch(match[group]):
                yield SecretSpan(kind, *match.span(group))


def find_named_secrets(text: str) -> Iterator[SecretSpan]:
    """Find the values in a text whose name is that of a secret: `--api-key=VALUE`, `TOKEN=VALUE`."""
    if not _NAME_HINT.search(text):
        return
    for of_any_text, of_xml, can_be_number in _NAMED_VALUES:
        patterns = [*of_any_text, *of_xml] if "<" in text else of_any_text
        for match in (match for pattern in patterns for match in pattern.finditer(text)):
            value = match["secret"]
            start, end = match.span("secret")
            is_harmless = _HARMLESS.fullmatch(value) or (_NUMBER.fullmatch(value) and not can_be_number)
            if not is_harmless and not (
                _FOLDER.match(value) and _FOLDER_NAME.search(match[0][: start - match.start()])
            ):
                yield SecretSpan("named as a secret", end - len(_unquote(value)), end)


def _unquote(value: str) -> str:
    """Remove the opening quote of a value, which a backslash may escape."""
    return re.sub(r"\A\\?[\"']", "", value)


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
    for index, word in enumerate(words):
        # The value of a flag is the rest of its argument, with any characters.
        if (flag := _SECRET_FLAG.match(word)) and not _HARMLESS.fullmatch(word[flag.end() :]):
            start = flag.end() + (word[flag.end()] in "\"'")
            if flag["word"] or not _NUMBER.fullmatch(word[start:]):
                masked[index] = word[:start] + replace(word[start:].rstrip(word[flag.end() : start]))
    for index, (word, value) in enumerate(pairwise(words), 1):
        if value.startswith("-") or _HARMLESS.fullmatch(value):
            continue
        if _WORD_FLAG.fullmatch(word) or (_KEY_FLAG.fullmatch(word) and not _NUMBER.fullmatch(value)):
            masked[index] = replace(value)
    return masked


def _find_passwords(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find the arguments that a known program takes for a password: their index, and where in them it begins."""
    names = [word.rpartition("/")[2] for word in words]
    for name in _PASSWORD_FLAGS.keys() & set(names):
        flags, pattern = _PASSWORD_FLAGS[name]
        first = names.index(name) + 1
        if name in _LOGIN_PROGRAMS:
            first = names.index("login", first) + 1 if "login" in names[first:] else len(words)
        for index in range(first, len(words)):
            flag = next((flag for flag in flags if words[index].startswith(flag)), "")
            if flag and len(words[index]) > len(flag):
                start = len(flag) + words[index][len(flag) :].startswith("=")
                if re.fullmatch(pattern, words[index][start:]):
                    yield index, start
            elif flag and name not in _ATTACHED_ONLY and re.fullmatch(pattern, "".join(words[index + 1 : index + 2])):
                yield index + 1, 0
    yield from _find_passwords_of_users(words)


def _find_passwords_of_users(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find passwords next to a user, for any program: -u USER -p PASSWORD."""
    names = [word.rpartition("/")[2] for word in words]
    for index, word in enumerate(words):
        user_flag = _USER_FLAG.fullmatch(word)
        user = "" if user_flag is None else user_flag["value"] or "".join(words[index + 1 : index + 2])
        if user_flag is None or user[:1] in ("", "-") or _SELECTS_USER.search(" ".join([*names[:index], ""])):
            continue
        after = index + (1 if user_flag["value"] else 2)
        for place in (after, index - 2) if word == "-u" else (after,):
            pair = words[place : place + 2] if place >= 0 else ()
            if len(pair) == 2 and pair[0] in ("-p", "-P") and pair[1][:1] != "-" and not _PORTS.fullmatch(pair[1]):
                yield place + 1, 0


def _classify_char(char: str) -> str:
    return "0" if char.isdecimal() else "a" if char.islower() else "A" if char.isupper() else char
