r"""Find paths in texts: of Linux and Windows, with any first folder, and with spaces.

A text has no mark where a path ends: `/data/my run/x.yaml` and `/data/x and a/b` look alike. What encloses a path
(quotes, brackets, an argument) decides where there is any. Names of layers begin with a slash as well
(`/encoder/layer.0/MatMul`): they are recognized by their words. What is in doubt is a path: its stand-in still
distinguishes it from others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

# The first folders of paths on any machine: a text that begins with one is a path.
ROOTS = frozenset(
    """Applications Library System Users Volumes afs apps bin boot cluster common data dev etc global gpfs home lib
    lib32 lib64 lustre media mnt net nfs opt p private proc project projects pscratch root run sbin scratch snap
    software srv sys tmp u usr var work workspace""".split()  # noqa: SIM905 - easier to read than a list
)
FILE_SUFFIX = re.compile(
    r"\.(?:so[\d.]*|dll|exe|py[cdix]?|ipynb|sh|c|cc|cpp|cxx|h|hh|hpp|cu|cuh|ptx|cubin|f|f90|rs|go|jl|js|ts|lua|java|jar"
    r"|txt|log|md|json|ya?ml|toml|ini|cfg|conf|csv|xml|html?|sqlite|db|nsys-rep|qdrep|ncu-rep|bin|dat|npy|npz|pt|pth"
    r"|onnx|safetensors|gguf|ckpt|h5|hdf5|parquet|arrow|tar|gz|zip|zst|pem|key|crt|sock|pid|lock)\Z"
)
# Words of programs and units. A text like /forward/attention that has only these is the name of a range.
WORDS = frozenset(
    """activation add all allgather allreduce api attention attn backward batch bias block blocks bn bwd cache call
    classifier clip compute conv copy cpu cross d2h decode decoder dense dev device down dropout embed embedding
    embeddings encoder epoch eval expert experts ffn forward fp16 fp32 fused fusion fwd gate gelu gemm generate gpu grad
    gradient h h2d head heads hour infer inference init input inputs io item iter iteration k kernel key kv layer
    layernorm layers linear ln load loss main matmul memory min mlp model module moe ms mul ns norm op optimizer out
    output outputs pool prefill proj projection q qkv query rank read relu request reset residual router run s sample
    sampler save sec second self self_attn send softmax stage stages step steps stream sync tail time token tokens
    train training transformer up update us v val validation value warmup weight weights write""".split()  # noqa: SIM905
)
# Operators at the end of the names of nodes in an ONNX graph.
_OPERATOR = re.compile(
    r"(?:Add|And|ArgMax|ArgMin|AveragePool|BatchNormalization|Cast|Clip|Concat|Constant(?:OfShape)?|Conv(?:Transpose)?"
    r"|Cos|CumSum|DequantizeLinear|Div|Dropout|Einsum|Elu|Equal|Erf|Exp|Expand|Flatten|Floor|FusedMatMul"
    r"|Gather(?:Elements|ND)?|Gelu|Gemm|GlobalAveragePool|Greater(?:OrEqual)?|GroupNormalization|HardSigmoid|HardSwish"
    r"|Identity|If|InstanceNormalization|LSTM|GRU|LayerNormalization|LeakyRelu|Less(?:OrEqual)?|Log(?:Softmax)?|Loop"
    r"|MatMul|Max(?:Pool)?|Mean|Min|Mod|Mul|Neg|NonMaxSuppression|NonZero|Not|OneHot|Or|Pad|Pow|PRelu|QuantizeLinear"
    r"|Range|Reciprocal|Reduce(?:L1|L2|Max|Mean|Min|Prod|Sum)|Relu|Reshape|Resize|Round|Scatter(?:Elements|ND)?|Shape"
    r"|Sigmoid|Sign|Sin|SkipLayerNormalization|Slice|Softmax|Softplus|Split|Sqrt|Squeeze|Sub|Sum|Tanh|Tile|TopK"
    r"|Transpose|Trilu|Unsqueeze|Upsample|Where|Xor)(?:_\d+)*(?:_(?:in|out)put_\d+)?"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*|\d+")
# A member of a list of modules: layers.0, down_blocks.1.
_MEMBER = re.compile(r"\w*(?:blocks?|convs?|experts?|h|heads?|layers?|stages?)\.\d+(?:\.\w+)*")
# Words of sentences: what follows them belongs to no path.
_SENTENCE_WORDS = frozenset(
    """after and are as at batch before by can cannot does done epoch exists failed for found from has in into is
    iteration loaded not of on or out per rank read reading step stream than the then to took using via was were
    while with without writing written""".split()  # noqa: SIM905
)
# A slash that separates two words or numbers.
_PAIR = re.compile(r"(?:\d+/\d+|[A-Za-z%]+/(?:s|sec|second|step|token|iter|GPU|gpu)|[A-Za-z]/[A-Za-z]|w/o?)(?![\w/.-])")
_WORD_PAIR = re.compile(r"([A-Za-z_]+)/([A-Za-z_]+)(?![\w/.-])")
_ROUTE = re.compile(r"(?:v\d+|api)\Z")

_END = r"\s\"'`<>|:;,()\[\]{}=&?*#\0"
_START = re.compile(
    r"(?:(?<![\w./~\\-])|(?<=file://)|(?<=file://localhost)|(?<=:///))/(?![/\s])"
    r"|(?<=(?<![\w-])-[A-Za-z])/(?![/\s])"  # -I/usr/include
    r"|(?<![\w:/.\\])//(?=[\w.$-]+/[^\s/])"  # //server/share
    r"|(?<![\w/.$%\\}-])(?:~[\w.-]{0,64}|\.\.|\$\w{1,64}|\$\{\w{1,64}\}|%\w{1,64}%)[\\/](?!\s)"
    r"|(?<!\w)[A-Za-z]:(?:\\|/(?!/))(?!\s)"  # C:\
    r"|(?<!\w)\\{2,4}(?=[\w.$-]+\\)"  # \\server\share
    r"|(?<![\w\\:.])\\(?=(?:Device|Documents and Settings|Program Files|ProgramData|Users|Windows)\\)"
)
_BODY = re.compile(rf"(?:\\ |[^{_END}])*")
_GROUP = r"\([^()/\\\r\n]{0,64}\)|\[[^\[\]/\\\r\n]{0,64}\]|\{[^{}/\\\r\n]{0,64}\}"
# What may stand between two separators of a path although it also ends paths; a separator must follow.
_SPACED = re.compile(
    rf"(?: +(?:(?!-[\w-])#?[^{_END}/\\]{{1,64}}(?:'\w{{1,20}})?(?:{_GROUP})?|&|{_GROUP})){{1,3}}(?=[/\\]+[^\s/\\])"
)
_GLUED = re.compile(
    rf"(?:[=,&#?*';](?=[\w.])[^{_END}/\\]{{0,64}}|{_GROUP}|(?<=[)\]}}])[^{_END}/\\]{{1,64}})"
    rf"(?:[=,&#?*';](?=[\w.])[^{_END}/\\]{{0,64}}|{_GROUP}|[^{_END}/\\]{{1,64}}){{0,8}}"
    rf"(?: +(?!-[\w-])[^{_END}/\\]{{1,64}}){{0,3}}(?=[/\\]+[^\s/\\])"
)
# A file's name with one space, and the second name of a user.
_SPACED_FILE = re.compile(rf" [^{_END}/\\]{{1,64}}(?![^\s\"'`<>|:;,()\[\]{{}}])")
_SECOND_NAME = re.compile(r" [A-Z][\w.-]{0,64}")
_HOME_NAME = re.compile(r"(?:^|[\\/])(?:Users|home)[\\/]+[\w.-]+\Z")
_CLOSERS = {'"': '"', "'": "'", "`": "`", "(": ")", "[": "]", "{": "}", "<": ">", ">": "<"}
_VALUE = re.compile(rf"(?:{_GROUP}|[^,;\"'`<>|()\[\]{{}}\r\n\t\0])*")
_SEPARATORS = re.compile(r"[\\/]+")
_REDIRECTION = re.compile(r"(?:^|[\s\d>&])>\Z")


def find_paths(text: str, roots: Container[str] = ROOTS, *, is_symbol: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each path in a text.

    `roots` are known first folders. In the name of a function (`is_symbol`), only what begins with one of them, or ends
    like a file, is a path.
    """
    position = 0
    while match := _START.search(text, position):
        start = match.start()
        end = _find_end(text, match.end())
        is_absolute = match[0] == "/"
        if not is_absolute or _is_path(text, start, end, roots, is_symbol=is_symbol):
            end = _extend(text, start, end)
            yield start, end
        elif (is_symbol and FILE_SUFFIX.search(text[start : (longer := _extend(text, start, end))])) or (
            not is_symbol
            and "/" not in text[start + 1 : end]
            and (start == 0 or text[start - 1] in "\"'`(=")
            and (longer := _extend(text, start, end)) > end
            and "/" in text[end:longer]
        ):
            end = longer
            yield start, end
        position = max(end, match.end())


def _find_end(text: str, position: int) -> int:
    """Return where the characters of paths end, without the punctuation of a sentence."""
    match = _BODY.match(text, position)
    end = match.end() if match else position
    while end > position and text[end - 1] in ".!":
        end -= 1
    return end


def _is_path(text: str, start: int, end: int, roots: Container[str], *, is_symbol: bool) -> bool:
    """Return whether what begins with a single slash is a path."""
    parts = [part for part in text[start:end].split("/") if part]
    before = text[start - 1 : start]
    if not parts or (before == "<" and len(parts) == 1 and text[end : end + 1] == ">"):
        return False  # the end of an XML element
    if parts[0] in roots or FILE_SUFFIX.search(parts[-1]):
        return True
    if is_symbol or len(parts) < 2 or _is_after_name(text, start):
        return False
    return not _is_name(parts) and not _ROUTE.match(parts[0])


def _is_after_name(text: str, start: int) -> bool:
    """Return whether a slash continues a name that ends with a bracket: f(float)/a/b."""
    before = text[start - 1 : start]
    if before == ">":
        is_element = "</" in text[start:]
        return not is_element and not _REDIRECTION.search(text[max(start - 3, 0) : start])
    return before != "" and before in ")]}"


def _is_name(parts: Sequence[str]) -> bool:
    """Return whether these parts name a layer, an operator or a range of a program."""
    if all(part.isdecimal() or part.rstrip("0123456789").rstrip("_.").lower() in WORDS for part in parts):
        return True
    if not all(_IDENTIFIER.fullmatch(part) for part in parts):
        return False
    return bool(_OPERATOR.fullmatch(parts[-1])) or any(_MEMBER.fullmatch(part) for part in parts)


def _extend(text: str, start: int, end: int) -> int:
    """Return the end of a path that has spaces, or other characters that usually end one."""
    before = text[start - 1 : start]
    is_value = start == 0 or before in "=,;:\"'`([{<>"
    if is_value and (value_end := _find_value_end(text, start, end, before)) is not None:
        return value_end
    while end < len(text):
        if match := _GLUED.match(text, end):
            end = _find_end(text, match.end())
            continue
        match = _SPACED.match(text, end)
        if match is None or FILE_SUFFIX.search(text[start:end]) or _is_sentence(text, match, is_value=is_value):
            break
        end = _find_end(text, match.end())
    parts = _SEPARATORS.split(text[start:end])
    if FILE_SUFFIX.search(parts[-1]) or "bin" in parts[-2:]:
        return end
    match = _SPACED_FILE.match(text, end)
    if match and FILE_SUFFIX.search(match[0].rstrip(".!")):
        return _find_end(text, match.end())
    if _HOME_NAME.search(text[start:end]) and (match := _SECOND_NAME.match(text, end)):
        return _find_end(text, match.end())
    return end


def _find_value_end(text: str, start: int, end: int, before: str) -> int | None:
    """Return the end of a path that fills its quotes, its brackets or its argument. None if it does not."""
    closer = _CLOSERS.get(before)
    if closer is not None and closer in "\"'`<>":
        value_end = text.find(closer, end)
        if value_end < 0:
            return None
    else:
        match = _VALUE.match(text, end)
        value_end = match.end() if match else end
        if closer is not None and text[value_end : value_end + 1] not in (closer, ","):
            return None
    remainder = text[end:value_end]
    if not remainder.startswith((" ", "(", "[", "{", ",", "&", "#", "=", "'")) or re.search(
        r" -[\w-]|(?:^|[ ,=])[/~]|[:|;\n\r\0]|\w=|\\\\| [A-Za-z]:[\\/]", remainder
    ):
        return None
    words = remainder.split()
    is_enclosed = closer is not None and closer in "\"'`<>)]}"
    parts = _SEPARATORS.split(text[start:end])
    if not is_enclosed and (
        FILE_SUFFIX.search(parts[-1])
        or "bin" in parts[-2:]
        or not all(re.fullmatch(r"[\w.+&/\\()\[\]{}-]+", word) for word in words)
        or any(_is_word_pair(word) for word in words)
        or _has_sentence_word(words)
    ):
        return None
    if is_enclosed and "bin" in parts[-2:]:
        return None
    return end + len(remainder.rstrip(" "))


def _is_sentence(text: str, match: re.Match[str], *, is_value: bool) -> bool:
    """Return whether words after a path belong to a sentence, and not to the name of a folder."""
    words = match[0].split()
    start = match.end() - len(words[-1])
    if _is_word_pair(text[start : start + 100]):
        return True
    return not is_value and _has_sentence_word(words)


def _has_sentence_word(words: Sequence[str]) -> bool:
    return any(word.strip("()[]{}").lower() in _SENTENCE_WORDS for word in words)


def _is_word_pair(text: str) -> bool:
    if _PAIR.match(text):
        return True
    match = _WORD_PAIR.match(text)
    return match is not None and match[1].lower() in WORDS and match[2].lower() in WORDS
