#!/usr/bin/env bash
# Question: which kernels does nvJitLink keep with -kernels-used=first?
# Guess:    that kernel alone (right for two kernels with different names). Nothing was guessed of names within names, of
#           lists and of names that do not exist.
# Seen:     nvidia-nvjitlink 13.5.37, nvidia-cuda-nvrtc 13.5.37. All whose name contains the text: my_first and
#           first_large, too, and both instances of a template by its name alone. A text that is in no name gives a cubin
#           without kernels, and success. A list, "first,second", keeps first, second and my_first of LTO-IR, and nothing
#           of PTX.
# Meets:    whoever trims code for one kernel: with a list or a misspelled name the link succeeds, and the kernel is
#           missing only when the program looks for it.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-nvjitlink==13.5.37 nvidia-cuda-nvrtc==13.5.37 pyelftools==0.33
cat >kernels.py <<'EOF'
import ctypes
import io
import sys

from elftools.elf.elffile import ELFFile

nvrtc = ctypes.CDLL(f"{sys.argv[1]}/libnvrtc.so.13")
linker = ctypes.CDLL(f"{sys.argv[1]}/libnvJitLink.so.13")
SOURCE = b"""
extern "C" __global__ void first(float *p) { p[0] = 1; }
extern "C" __global__ void first_large(float *p) { p[0] = 2; }
extern "C" __global__ void my_first(float *p) { p[0] = 3; }
extern "C" __global__ void second(float *p) { p[0] = 4; }
template <typename T> __global__ void scale(T *p) { p[0] = 5; }
template __global__ void scale<float>(float *);
template __global__ void scale<double>(double *);
"""
PTX, LTO_IR = 2, 3


def call(function, *arguments):
    assert function(*arguments) == 0


def compile_source(what, option):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    call(nvrtc.nvrtcCreateProgram, ctypes.byref(program), SOURCE, b"k.cu", 0, None, None)
    call(nvrtc.nvrtcCompileProgram, program, 2, (ctypes.c_char_p * 2)(b"-arch=compute_90", option))
    call(nvrtc[f"nvrtcGet{what}Size"], program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    call(nvrtc[f"nvrtcGet{what}"], program, text)
    return text.raw


def link(kind, code, *options):
    """Return the kernels that are in the linked cubin."""
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    texts = (ctypes.c_char_p * (len(options) + 1))(b"-arch=sm_90", *options)
    call(linker.__nvJitLinkCreate_13_5, ctypes.byref(handle), len(texts), texts)
    call(linker.__nvJitLinkAddData_13_5, handle, kind, code, ctypes.c_size_t(len(code)), b"k")
    call(linker.__nvJitLinkComplete_13_5, handle)
    call(linker.__nvJitLinkGetLinkedCubinSize_13_5, handle, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    call(linker.__nvJitLinkGetLinkedCubin_13_5, handle, cubin)
    sections = ELFFile(io.BytesIO(cubin.raw)).iter_sections()
    return sorted(section.name.removeprefix(".text.") for section in sections if section.name.startswith(".text."))


ptx, lto_ir = compile_source("PTX", b"--fmad=true"), compile_source("LTOIR", b"-dlto")
seen = {}
for text in ("first", "scale", "nothing", "first,second"):
    option = f"-kernels-used={text}".encode()
    seen[text] = (link(PTX, ptx, option), link(LTO_IR, lto_ir, b"-lto", option))
print("nvJitLink 13.5.37, kernels of PTX and of LTO-IR:", seen)
firsts, scales = ["first", "first_large", "my_first"], ["_Z5scaleIdEvPT_", "_Z5scaleIfEvPT_"]
assert seen == {
    "first": (firsts, firsts),
    "scale": (scales, scales),
    "nothing": ([], []),
    "first,second": ([], ["first", "my_first", "second"]),
}
EOF
venv/bin/python kernels.py "$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/lib)"
