#!/usr/bin/env bash
# Question: what does nvdisasm -json say about an instruction: its address, its line with -g, where it was inlined with
#           -gi?
# Guess:    the opcode and the operands only; no address, no line.
# Seen:     nvidia-cuda-nvcc 13.5.37 (ptxas), nvidia-cuda-nvdisasm 13.5.37. No address, as guessed: it is the position
#           times 16, while branches have theirs as text. With -g there are lines, but only at the first instruction of
#           each line: most instructions have none, and it is that of the one before. The files of the lines are the
#           last element of the document, which is absent without -g. With -gi the output is the same as with -g,
#           without a message: the callers of an inlined function are in the text only.
# Meets:    whoever adds up instructions by line from the JSON: two thirds of them seem to have no line. And whoever
#           asks for the callers.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin)
cat >lines.ptx <<'EOF'
.version 8.6
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 out) {
.reg .b64 %a<3>; .reg .b32 %r<2>; .reg .f32 %f<3>;
.loc 1 10 0
ld.param.u64 %a1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %a2, %r1, 4; add.s64 %a1, %a1, %a2; ld.global.f32 %f1, [%a1];
.loc 1 11 0
.loc 1 2 0, function_name $name, inlined_at 1 11 0
fma.rn.f32 %f2, %f1, %f1, %f1;
.loc 1 12 0
st.global.f32 [%a1], %f2;
ret; }
.file 1 "/src/kernel.cu"
.section .debug_str
{
$name:
.b8 105, 110, 110, 101, 114, 0
}
EOF
"$bin/ptxas" -arch=sm_90 -lineinfo lines.ptx -o lines.cubin
"$bin/nvdisasm" -json lines.cubin >none.json
"$bin/nvdisasm" -g -json lines.cubin >lines.json
"$bin/nvdisasm" -gi -json lines.cubin >callers.json
callers=$("$bin/nvdisasm" -gi -c lines.cubin | grep -c "inlined at" || true)
cat >read.py <<'EOF'
import json

none, lines, callers = (json.load(open(f"{name}.json")) for name in ("none", "lines", "callers"))
rows = lines[1][0]["sass-instructions"]
rows = rows[: 1 + next(number for number, row in enumerate(rows) if row["opcode"] == "EXIT")]
numbers = [row["source-line"] for row in rows if "source-line" in row]
has_address = any("address" in key or "offset" in key for row in rows for key in row)
print(f"lines {numbers} at {len(numbers)} of {len(rows)} instructions, addresses {has_address},", end=" ")
print(f"{len(none)} and {len(lines)} elements, file {lines[2]['files'][0]['file']}, with -gi equal {callers == lines}")
EOF
seen="$(python3 read.py), callers in the text $callers"
echo "nvdisasm 13.5.37, -json with -g: $seen"
expected="lines [10, 2, 12] at 3 of 9 instructions, addresses False, 2 and 3 elements, file kernel.cu, with -gi equal True"
[ "$seen" = "$expected, callers in the text 1" ]
