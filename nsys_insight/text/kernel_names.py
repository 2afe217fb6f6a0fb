"""Readable CUDA kernel names: without C++ boilerplate, and shortened so that the meaningful parts stay."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from nsys_insight.text.cells import ELLIPSIS, end_of, start_of, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ARGS = r"((?:[^()]|\([^()]*\))*+)"  # the text in parentheses, which may contain one level of parentheses

_CXX = re.compile(r"[<(\[]|::")
_CAST = re.compile(r"(?:(?<=<)|(?<=, ))\([A-Za-z_][\w: ]*\)(?=-?\d)")
_LAMBDA = re.compile(rf"\[lambda\({_ARGS}\) \(instance (\d+)\)\]|\{{lambda\({_ARGS}\)#(\d+)\}}")
_NAMESPACE = re.compile(
    r"(?<![\w:])(?:at::native::|at::|c10::|(?:cuda::)?std::(?:__\w+::)?)"
    r"|(?:<unnamed>|\(anonymous namespace\)|_GLOBAL__N__\w+|(?<=::)(?:CUB|THRUST)_\w+_NS)::"
)
# nvcc puts a hash of the source file's path into the linker's names of kernels that only this file sees. If other files
# see no function of it, its process ID follows, and a second hash, by NVRTC of the time; their lengths differ, too.
_FILE_HASH = re.compile(
    r"\d*(_GLOBAL__N__|__nv_static_)(?:\d+__)?[0-9a-f]{8}_(\d+_\w+?_)(?:[0-9a-f]{8}_\d+|(?=[0-9a-f]{8}))"
)
_ABI_TAG = re.compile(r"\[abi:\w+\]")  # Numba's kernels have two, with a counter and with the compiler's options
_POINTER = re.compile(r" +(?=[*&]+(?:[,)>]| const\b))")
_VOID = re.compile(r"(?<![\w:])void (?=[\w:])")
_CALL = re.compile(rf"::operator\(\)\({_ARGS}\)(?: const)?(?=::)")
_INNER_PARAMETERS = re.compile(rf"\({_ARGS}\)(?: const)?(?=::)")
_CXX_TYPE = re.compile(r"\b(?:bool|char|short|int|long|float|double|half|u?int\d+_t|size_t|T\d+)\b|[*&<]|::")

# Template arguments without a meaning for readers: numbers, pointers, element types, helpers of PyTorch's loops.
_NUMBER = r"-?\d+\w*|true|false|.*\*"
_BUILTIN = r"(?:(?:un)?signed )?(?:bool|char|short|int|long|long long|float|double|void)\d?|u?int\d+_t|__\w+"
_ELEMENT = r"(?:\w+::)*(?:\w*bfloat16\w*|BFloat16|\w*[hH]alf\w*|t?float\w*_t|complex<.*>|OpaqueType<.*>)"
_HELPER = r"(?:\w+::)*(?:array|(?:Trivial)?OffsetCalculator|(?:Load|Store)With\w*)\b.*"
_PLUMBING = re.compile(rf"{_NUMBER}|(?:const )?(?:{_BUILTIN}|{_ELEMENT})(?: const)?&?|{_HELPER}")

_LAMBDAS = re.compile(r"(?:::lambda(?:#\d+)?(?:\([^()]*\))?)*::lambda(#\d+)?(\([^()]*\))?")
# Longer names come from a generator's mistake, or from an attack. Parsing their brackets takes quadratic time.
_MAX_CHARS = 8_000
# A timeline shows the same name thousands of times.
_CACHE_SIZE = 4096
_MIN_START_CELLS = 6  # this many cells of a name's start always stay


@lru_cache(_CACHE_SIZE)
def make_readable(name: str) -> str:
    """Strip return type, parameters, casts, and the namespaces of PyTorch and C++ from a demangled name.

    Template arguments and functors stay. `[lambda(float) (instance 3)]` becomes `lambda#3(float)`. Names that are not
    C++ are returned unchanged.
    """
    if len(name) > _MAX_CHARS or not _CXX.search(name) or name.startswith("_Z"):
        return name
    text = _CAST.sub("", name)
    text = _POINTER.sub("", text).replace("operator ()", "operator()")
    text = _until_stable(text, lambda text: _LAMBDA.sub(_rename_lambda, text))
    text = _ABI_TAG.sub("", _NAMESPACE.sub("", text))
    text = _until_stable(text, lambda text: _INNER_PARAMETERS.sub("", _CALL.sub("", text)))
    return _VOID.sub("", _without_parameters(text))


def remove_file_hash(name: str) -> str:
    """Remove from a linker's name what differs between builds: the same source elsewhere gives the same text."""
    return _FILE_HASH.sub(r"\1\2", name)


def make_all_readable(names: Iterable[str]) -> dict[str, str]:
    """Map each name to its readable form; names that would look the same (overloads) stay complete."""
    texts = {name: make_readable(name) for name in names}
    return {name: name if len(group) > 1 else text for text, group in _group_by_short(texts).items() for name in group}


@lru_cache(_CACHE_SIZE)
def fit(text: str, width: int) -> str:
    """Shorten a readable name to `width` cells: the start and the meaningful end stay, "…" replaces the middle.

    The meaningful end of a template is its innermost functor; that of other names is the last part (a tile, a type).
    """
    if width_of(text) <= width:
        return text
    head, functor = text.partition("<")[0], functor_of(text)
    if not functor:
        # The full head of a template is more informative than the numbers at its end.
        end_cells = max(width // 4, width - width_of(head) - 2) if head != text else width
        return _cut_middle(text, width, min(width // 2, end_cells))
    with_numbers, with_types = _LAMBDAS.sub(_shorten_lambdas, functor), _keep_last_lambda(functor)
    compact = _LAMBDAS.sub(_shorten_lambdas, text)
    for short in (compact, *(f"{head}<{ELLIPSIS}{end}>" for end in (with_numbers, with_types, strip_types(functor)))):
        if width_of(short) <= width:
            return short
    return _keep_end(head, strip_types(functor), width)


def fit_all(texts: Iterable[str], width: int) -> dict[str, str]:
    """Map each text to at most `width` cells; texts that would look the same show where they differ instead."""
    short_texts = {text: fit(text, width) for text in texts}
    for group in _group_by_short(short_texts).values():
        if len(group) > 1:
            short_texts |= _distinguish(group, width)
    return short_texts


def _distinguish(texts: list[str], width: int) -> dict[str, str]:
    """Cut texts so that the types of their functors show or, if those are equal, the first difference does."""
    short_texts = {
        text: _keep_end(text.partition("<")[0], _keep_last_lambda(functor_of(text)), width)
        for text in texts
        if "<" in text
    }
    if len(set(short_texts.values())) < len(texts):
        begin = len(os.path.commonprefix(texts))  # noqa: RUF071 - texts, not paths: compares characters
        short_texts = {text: _keep_from(text, begin, width) for text in texts}
    for group in _group_by_short(short_texts).values():
        if 1 < len(group) < len(texts):
            short_texts |= _distinguish(group, width)
    return short_texts


def _keep_end(head: str, functor: str, width: int) -> str:
    """Cut the middle out of a template's name but keep its functor, unless that is too long."""
    end = width_of(functor) + 1
    if end > width - _MIN_START_CELLS - 1:
        return _cut_middle(f"{head}<{functor}>", width, width // 2)
    return _cut_middle(f"{head}<{ELLIPSIS}{functor}>", width, end)


def _keep_from(text: str, begin: int, width: int) -> str:
    """Cut `text` so that its first letters, the words around `begin` and, if there is room, its functor stay."""
    start = start_of(text, max(_MIN_START_CELLS, width // 3))
    begin = max(len(start), begin - 4)
    while begin > len(start) and text[begin - 1].isalnum():
        begin -= 1
    short = (start + ELLIPSIS if begin > len(start) + 1 else text[:begin]) + text[begin:]
    if width_of(short) <= width:
        return short
    tail = f"{ELLIPSIS}{strip_types(functor_of(text))}>"
    if len(tail) == 2 or width_of(tail) > width - width_of(start) - _MIN_START_CELLS:
        tail = ELLIPSIS
    return start_of(short, width - width_of(tail)) + tail


def _cut_middle(text: str, width: int, end: int) -> str:
    """Cut the middle out of `text`; the last `end` cells stay."""
    if width_of(text) <= width:
        return text
    return start_of(text, width - 1 - end) + ELLIPSIS + end_of(text, end)


def _group_by_short(short_by_text: dict[str, str]) -> dict[str, list[str]]:
    groups = defaultdict(list)
    for text, short in short_by_text.items():
        groups[short].append(text)
    return groups


def _until_stable(text: str, change: Callable[[str], str]) -> str:
    while (next_text := change(text)) != text:
        text = next_text
    return text


def _rename_lambda(match: re.Match[str]) -> str:
    arguments, instance = (match[1], match[2]) if match[2] else (match[3], match[4])
    number = "" if instance == "1" else f"#{instance}"
    return f"lambda{number}({arguments})" if arguments else f"lambda{number}"


def _shorten_lambdas(lambdas: re.Match[str]) -> str:
    """Shorten nested lambdas to their numbers and the types of the last one: `::lambda#3::lambda(int)` is `#3(int)`."""
    return "".join(re.findall(r"#\d+", lambdas[0])) + (lambdas[2] or "")


def _keep_last_lambda(functor: str) -> str:
    """Keep the last of several nested lambdas, which has the element types: `::lambda#3::lambda(int)` is `(int)`."""
    return _LAMBDAS.sub(r"\1\2", functor)


def strip_types(functor: str) -> str:
    """Strip the types from a functor."""
    return re.split(r"[<(]", _LAMBDAS.sub(r"\1", functor), maxsplit=1)[0]


def _without_parameters(text: str) -> str:
    """Cut the parameter list at the end of a function's name; other text in parentheses stays."""
    if not text.endswith(")"):
        return text
    depth = 0
    for begin in range(len(text) - 1, 0, -1):
        depth += (text[begin] == ")") - (text[begin] == "(")
        if depth == 0:
            is_parameter_list = text.startswith("void ") or _CXX_TYPE.search(text, begin)
            return text[:begin] if is_parameter_list and text[begin - 1] != " " else text
    return text


def functor_of(text: str) -> str:
    """Return the innermost template argument that is not a number, a data type or a helper; "" without one."""
    functor = ""
    if len(text) > _MAX_CHARS:
        return functor
    while inner := next((part for part in _template_arguments(text) if not _PLUMBING.fullmatch(part)), ""):
        functor = text = inner
    return re.sub(r"^(?:\w+::)+(?!lambda)", "", functor)


def _template_arguments(text: str) -> list[str]:
    """Split the first template argument list of `text` at its own commas."""
    begin = text.find("<") + 1
    arguments, depth = [], 0
    for index in range(begin, len(text) if begin else 0):
        char = text[index]
        if depth == 0 and char in ",>":
            arguments.append(text[begin:index].strip())
            begin = index + 1
            if char == ">":
                return arguments
        depth += (char in "<([{") - (char in ">)]}")
    return []
