#!/usr/bin/env bash
# Question: what do the accessors of an ncu-report metric return if the kind does not fit, and in which order are
#           metrics?
# Guess:    `as_string()` of a number is its text; NaN is 2^63 by `as_uint64()` (right); the order of the file. Nothing
#           was guessed of infinity and 1e20.
# Seen:     ncu-report 2026.3.1, on a report made here. `as_string()` of a number is None. `as_uint64()` of NaN is 2^63,
#           of infinity and of 1e20 it is 0, of -1.5 it is 2^64 - 1. `as_double()` of the text "12.5" is 0.0.
#           `has_value()` is true for NaN, too. `metric_names()` is sorted by name. `value()` has the right type.
# Meets:    whoever reads counters by one accessor for all: a metric that could not be measured becomes 9.2e18, a large
#           one 0.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq ncu-report==2026.3.1
venv/bin/python - <<'EOF'
import math
import struct

import ncu_report


def number(value):
    """Seven bits per byte, lowest first."""
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def integer(field, value):
    return number(field << 3) + number(value)


def double(field, value):
    return number(field << 3 | 1) + struct.pack("<d", value)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return number(field << 3 | 2) + number(len(content)) + content


def sized(content):
    return struct.pack("<I", len(content)) + content


metrics = {"nan": math.nan, "large": 1e20, "infinite": math.inf, "negative": -1.5, "text": "12.5", "count": 16}
encode = {str: (block, 1), float: (double, 3), int: (integer, 5)}
rows = b""
for index, value in enumerate(metrics.values()):
    write, field = encode[type(value)]
    rows += block(13, integer(1, index) + block(2, write(field, value)))
size = {axis: integer(1, axis) + integer(2, 1) + integer(3, 1) for axis in (0, 16, 32)}
kernel = integer(1, 1) + integer(2, 1) + integer(3, 1) + integer(4, 1)
kernel += block(5, "k") + block(6, "k") + block(7, "k(int)")
kernel += integer(8, 3) + block(9, size[0]) + block(10, size[16]) + block(11, size[32]) + rows + block(15, b"")
names = block(4, b"".join(block(1, name) for name in metrics))
process = block(6, integer(1, 1) + block(2, "host") + block(3, "/bin/a"))
header = integer(1, 0) + integer(2, 1) + names + integer(5, len(sized(kernel))) + process
with open("a.ncu-rep", "wb") as file:
    file.write(b"NVR\0" + sized(integer(1, 7)) + sized(header) + sized(kernel))

action = ncu_report.load_report("a.ncu-rep").range_by_idx(0).action_by_idx(0)
metric = {name: action.metric_by_name(name) for name in metrics}
seen = {
    "names": list(action.metric_names()),
    "has_value": metric["nan"].has_value(),
    "as_string": metric["count"].as_string(),
    "as_uint64": [metric[name].as_uint64() for name in ("nan", "infinite", "large", "negative", "count")],
    "as_double": metric["text"].as_double(),
    "value": [metric[name].value() for name in ("large", "negative", "text", "count")],
}
print("ncu-report 2026.3.1:", seen)
assert seen == {
    "names": sorted(metrics),
    "has_value": True,
    "as_string": None,
    "as_uint64": [2**63, 0, 0, 2**64 - 1, 16],
    "as_double": 0.0,
    "value": [1e20, -1.5, "12.5", 16],
}
EOF
