"""CUDA kernel names as people read them: without C++ plumbing, and shortened so that the meaning survives."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from nsys_insight.text.cells import ELLIPSIS, end_of, start_of, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ARGS = r"((?:[^()]|\([^()]*\))*+)"  # what stands between two parentheses that nest once

_CXX = re.compile(r"[<(\[]|::")
_CAST = re.compile(r"(?:(?<=<)|(?<=, ))\([A-Za-z_][\w: ]*\)(?=-?\d)")
_LAMBDA = re.compile(rf"\[lambda\({_ARGS}\) \(instance (\d+)\)\]|\{{lambda\({_ARGS}\)#(\d+)\}}")
_NAMESPACE = re.compile(
    r"(?<![\w:])(?:at::native::|at::|c10::|(?:cuda::)?std::(?:__\w+::)?)"
    r"|(?:<unnamed>|\(anonymous namespace\)|_GLOBAL__N__\w+|(?<=::)(?:CUB|THRUST)_\w+_NS)::"
)
_POINTER = re.compile(r" +(?=[*&]+(?:[,)>]| const\b))")
_VOID = re.compile(r"(?<![\w:])void (?=[\w:])")
_CALL = re.compile(rf"::operator\(\)\({_ARGS}\)(?: const)?(?=::)")
_INNER_PARAMETERS = re.compile(rf"\({_ARGS}\)(?: const)?(?=::)")
_CXX_TYPE = re.compile(r"\b(?:bool|char|short|int|long|float|double|half|u?int\d+_t|size_t|T\d+)\b|[*&<]|::")

# What a template is given besides its meaning: numbers, pointers, element types, and the helpers of PyTorch's loops.
_NUMBER = r"-?\d+\w*|true|false|.*\*"
_BUILTIN = r"(?:(?:un)?signed )?(?:bool|char|short|int|long|long long|float|double|void)\d?|u?int\d+_t|__\w+"
_ELEMENT = r"(?:\w+::)*(?:\w*bfloat16\w*|BFloat16|\w*[hH]alf\w*|t?float\w*_t|complex<.*>|OpaqueType<.*>)"
_HELPER = r"(?:\w+::)*(?:array|(?:Trivial)?OffsetCalculator|(?:Load|Store)With\w*)\b.*"
_PLUMBING = re.compile(rf"{_NUMBER}|(?:const )?(?:{_BUILTIN}|{_ELEMENT})(?: const)?&?|{_HELPER}")

_LAMBDAS = re.compile(r"(?:::lambda(?:#\d+)?(?:\([^()]*\))?)*::lambda(#\d+)?(\([^()]*\))?")
_START = 6  # cells of a name's beginning that are kept, however meaningful its end


def readable(name: str) -> str:
    """Return a demangled name without what says little: return type, parameters, casts, PyTorch's and C++'s namespaces.

    Template arguments and functors stay. `[lambda(float) (instance 3)]` becomes `lambda#3(float)`. Names that are no
    C++ come back as they are.
    """
    if not _CXX.search(name) or name.startswith("_Z"):
        return name
    text = _CAST.sub("", name)
    text = _POINTER.sub("", text).replace("operator ()", "operator()")
    text = _until_stable(text, lambda text: _LAMBDA.sub(_lambda, text))
    text = _NAMESPACE.sub("", text)
    text = _until_stable(text, lambda text: _INNER_PARAMETERS.sub("", _CALL.sub("", text)))
    return _VOID.sub("", _without_parameters(text))


def readable_all(names: Iterable[str]) -> dict[str, str]:
    """Map each name to its readable form; names that would look alike (overloads) keep everything."""
    texts = {name: readable(name) for name in names}
    return {name: name if len(group) > 1 else text for text, group in _groups(texts).items() for name in group}


def fit(text: str, width: int) -> str:
    """Shorten a readable name to `width` cells: the beginning and the meaningful end stay, "…" stands for the rest.

    The meaningful end of a template is its innermost functor; that of any other name is its last part (a tile, a type).
    """
    if width_of(text) <= width:
        return text
    head, functor = text.partition("<")[0], functor_of(text)
    if not functor:
        # The whole head of a template says more than the numbers at its end.
        spared = max(width // 4, width - width_of(head) - 2) if head != text else width
        return _cut(text, width, min(width // 2, spared))
    numbered, typed = _LAMBDAS.sub(_numbers_and_types, functor), _typed(functor)
    compact = _LAMBDAS.sub(_numbers_and_types, text)
    for short in (compact, *(f"{head}<{ELLIPSIS}{end}>" for end in (numbered, typed, bare(functor)))):
        if width_of(short) <= width:
            return short
    return _keep_end(head, bare(functor), width)


def fit_all(texts: Iterable[str], width: int) -> dict[str, str]:
    """Map each text to one of at most `width` cells; those that would look alike show what tells them apart instead."""
    fitted = {text: fit(text, width) for text in texts}
    for alike in _groups(fitted).values():
        if len(alike) > 1:
            fitted |= _told_apart(alike, width)
    return fitted


def _told_apart(alike: list[str], width: int) -> dict[str, str]:
    """Cut texts so that their functors' types or, if those are the same, the first place where they differ is seen."""
    fitted = {text: _keep_end(text.partition("<")[0], _typed(functor_of(text)), width) for text in alike if "<" in text}
    if len(set(fitted.values())) < len(alike):
        begin = len(os.path.commonprefix(alike))  # noqa: RUF071 - these are no paths: characters are what is compared
        fitted = {text: _keep_from(text, begin, width) for text in alike}
    for still in _groups(fitted).values():
        if 1 < len(still) < len(alike):
            fitted |= _told_apart(still, width)
    return fitted


def _keep_end(head: str, functor: str, width: int) -> str:
    """Cut the middle out of a template's name but spare its functor, unless that is too long to be spared."""
    end = width_of(functor) + 1
    if end > width - _START - 1:
        return _cut(f"{head}<{functor}>", width, width // 2)
    return _cut(f"{head}<{ELLIPSIS}{functor}>", width, end)


def _keep_from(text: str, begin: int, width: int) -> str:
    """Cut `text` so that it shows its first letters, the words around `begin`, and the functor where there is room."""
    start = start_of(text, max(_START, width // 3))
    begin = max(len(start), begin - 4)
    while begin > len(start) and text[begin - 1].isalnum():
        begin -= 1
    short = (start + ELLIPSIS if begin > len(start) + 1 else text[:begin]) + text[begin:]
    if width_of(short) <= width:
        return short
    tail = f"{ELLIPSIS}{bare(functor_of(text))}>"
    if len(tail) == 2 or width_of(tail) > width - width_of(start) - _START:
        tail = ELLIPSIS
    return start_of(short, width - width_of(tail)) + tail


def _cut(text: str, width: int, end: int) -> str:
    """Cut the middle out of `text` so that `end` cells of its end stay."""
    if width_of(text) <= width:
        return text
    return start_of(text, width - 1 - end) + ELLIPSIS + end_of(text, end)


def _groups(shown: dict[str, str]) -> dict[str, list[str]]:
    groups = defaultdict(list)
    for text, short in shown.items():
        groups[short].append(text)
    return groups


def _until_stable(text: str, change: Callable[[str], str]) -> str:
    while (changed := change(text)) != text:
        text = changed
    return text


def _lambda(match: re.Match[str]) -> str:
    arguments, instance = (match[1], match[2]) if match[2] else (match[3], match[4])
    number = "" if instance == "1" else f"#{instance}"
    return f"lambda{number}({arguments})" if arguments else f"lambda{number}"


def _numbers_and_types(lambdas: re.Match[str]) -> str:
    """Write a chain of lambdas as their numbers and the last one's types: `::lambda#3::lambda(int)` is `#3(int)`."""
    return "".join(re.findall(r"#\d+", lambdas[0])) + (lambdas[2] or "")


def _typed(functor: str) -> str:
    """Keep the last of a chain of lambdas, which has the element types: `::lambda#3::lambda(int)` is `(int)`."""
    return _LAMBDAS.sub(r"\1\2", functor)


def bare(functor: str) -> str:
    """Write a functor without its types."""
    return re.split(r"[<(]", _LAMBDAS.sub(r"\1", functor), maxsplit=1)[0]


def _without_parameters(text: str) -> str:
    """Cut the parameter list that ends a function's name; other text in parentheses stays."""
    if not text.endswith(")"):
        return text
    depth = 0
    for begin in range(len(text) - 1, 0, -1):
        depth += (text[begin] == ")") - (text[begin] == "(")
        if depth == 0:
            known = text.startswith("void ") or _CXX_TYPE.search(text, begin)
            return text[:begin] if known and text[begin - 1] != " " else text
    return text


def functor_of(text: str) -> str:
    """Return the innermost template argument that is neither a number, a type of data nor a helper, or ""."""
    functor = ""
    while inner := next((part for part in _template_arguments(text) if not _PLUMBING.fullmatch(part)), ""):
        functor = text = inner
    return re.sub(r"^(?:\w+::)+(?!lambda)", "", functor)


def _template_arguments(text: str) -> list[str]:
    """Split the first template argument list of `text` at its own commas."""
    begin = text.find("<") + 1
    arguments, depth = [], 0
    for at in range(begin, len(text) if begin else 0):
        char = text[at]
        if depth == 0 and char in ",>":
            arguments.append(text[begin:at].strip())
            begin = at + 1
            if char == ">":
                return arguments
        depth += (char in "<([{") - (char in ">)]}")
    return []
