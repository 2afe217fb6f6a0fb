"""The short name of an operation: library, operation, type and tile, without what C++ templates add."""

from __future__ import annotations

import re
from functools import lru_cache

from nsys_insight.text.cells import ELLIPSIS, printable, start_of, width_of
from nsys_insight.text.kernel_names import fit, functor_of, make_readable, strip_types

_Types = tuple[tuple[re.Pattern[str], str], ...]
# How a provenance is written before a name; others are part of the names themselves, or say nothing.
_LIBRARIES = {"PyTorch native": "PyTorch", "CUB/Thrust": "CUB", "cuBLAS": "cuBLAS", "cuDNN": "cuDNN", "XLA": "XLA"}
_LIBRARY_IN_NAME = {"cuBLAS": "cublas", "cuDNN": "cudnn"}
_DEFAULT_WIDTH = 52
# Types in the order in which they say what a kernel computes with: half types before what they are converted to.
_FLOAT_TYPES: _Types = (
    (re.compile(r"BFloat16|bfloat16"), "bf16"), (re.compile(r"\bHalf\b|\b__half\b|float16"), "f16"),
    (re.compile(r"Float8|__nv_fp8"), "fp8"), (re.compile(r"\bdouble\b"), "f64"), (re.compile(r"\bfloat\b"), "f32"),
)  # fmt: skip
# Types of integers are often those of an index, not of the elements.
_OTHER_TYPES: _Types = (
    (re.compile(r"\blong\b"), "i64"),
    (re.compile(r"\bint\b"), "i32"),
    (re.compile(r"\bbool\b"), "bool"),
)
# A type of PyTorch that has only the size of the elements.
_ANY_ELEMENT = "OpaqueType"

# Parts of names that say how a kernel was written, not what it does.
_HEAD_PARTS = re.compile(r"(?:^|_)(?:vectorized|unrolled|legacy|kernel|cuda)(?=_|$)")
_FUNCTOR_PARTS = re.compile(
    r"^CUDAFunctor(?:OnSelf|OnOther)?_|_kernel(?:_cuda|_impl)*$|_?(?:CUDA)?Kernel(?:Impl)?$|_cuda$|_impl$|Functor$|Ops$"
)
_BUILD_PARTS = re.compile(
    r"_generated_fort_native|_knob_\d+|(?:_\d+x\d+x\d+)?_cga\d+x\d+x\d+|_kernel\d_\d$|__5x_cublas$"
)


@lru_cache(4096)
def shorten_operation(name: str, provenance: str | None = None, width: int = _DEFAULT_WIDTH) -> str:
    """Return the short name of a kernel or another operation, at most `width` cells.

    The library, the operation, the element type and the tile stay: `PyTorch elementwise add bf16`,
    `cuBLAS nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT`. Names of copies, memsets and graphs are returned unchanged.
    """
    readable = make_readable(name)
    library = _LIBRARIES.get(provenance or "", "")
    functor = functor_of(readable) if library == "PyTorch" else ""
    if functor and "<" in readable:
        short = _describe_functor(readable.partition("<")[0], functor, name)
    elif "<" in readable and library:
        short = _strip_arguments(readable)
    else:
        short = _BUILD_PARTS.sub("", readable)
    if library and _LIBRARY_IN_NAME.get(library, library).lower() not in short.lower():
        short = f"{library} {short}"
    return printable(short if width_of(short) <= width else _cut_name(short, width))


def _describe_functor(head: str, functor: str, name: str) -> str:
    """Describe a kernel of PyTorch by its head, what its functor computes, and the type that it computes with."""
    operation = strip_types(functor)
    while (shorter := _FUNCTOR_PARTS.sub("", operation)) and shorter != operation:
        operation = shorter
    kind = _HEAD_PARTS.sub("", head.rpartition("::")[2]).strip("_")
    # A double in the name may be a parameter, such as a learning rate.
    short_floats = tuple(entry for entry in _FLOAT_TYPES if entry[1] != "f64")
    other_types = () if _ANY_ELEMENT in functor else _OTHER_TYPES
    element = _find_type((functor, _FLOAT_TYPES), (name, short_floats), (functor, other_types))
    return " ".join(filter(None, (kind, operation if operation != kind else "", element)))


def _strip_arguments(readable: str) -> str:
    """Strip template arguments and namespaces, but keep the type of the elements."""
    head, _, arguments = readable.partition("<")
    first_argument = arguments.partition(",")[0]
    other_types = () if _ANY_ELEMENT in first_argument else _OTHER_TYPES
    head = head.rpartition("::")[2]
    element = _find_type((first_argument, _FLOAT_TYPES), (readable, _FLOAT_TYPES), (first_argument, other_types))
    return f"{head} {element}".strip()


def _find_type(*sources: tuple[str, _Types]) -> str:
    """Return the first of the types that is in its text; "" if none is."""
    return next((word for text, types in sources for pattern, word in types if pattern.search(text)), "")


def _cut_name(text: str, width: int) -> str:
    short = fit(text, width)
    return short if width_of(short) <= width else start_of(text, width - 1) + ELLIPSIS
