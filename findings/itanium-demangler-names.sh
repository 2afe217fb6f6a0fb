#!/usr/bin/env bash
# Question: does itanium-demangler write the names of kernels as other demanglers do?
# Guess:    all write "(anonymous namespace)"; it returns nothing for a lambda, and does not know the 16-bit types of
#           floating point. Nothing was guessed of -1 and of packs.
# Seen:     itanium-demangler 1.1. The unnamed namespace stays "_GLOBAL__N_1"; the argument -1 is written "(int)n1"; a
#           pack of types is written as the Python objects of its tree. A name that is not mangled gives None, but
#           lambdas and _Float16 raise NotImplementedError and KeyError.
# Meets:    whoever shows or groups kernel names by it: names of templates with packs are unreadable, and a loop over
#           all names ends at the first lambda.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq itanium-demangler==1.1
venv/bin/python - <<'EOF'
import itanium_demangler


def demangle(name):
    try:
        return str(itanium_demangler.parse(name))
    except (KeyError, NotImplementedError) as error:
        return type(error).__name__


names = {
    "unnamed": "_ZN12_GLOBAL__N_16kernelEPf",
    "negative": "_Z6kernelILin1EEvv",
    "pack": "_Z6kernelIJifEEvDpT_",
    "lambda": "_Z6kernelIZ4mainEUlvE_EvT_",
    "half": "_Z6kernelPDF16_",
    "not mangled": "kernel",
}
seen = {question: demangle(name) for question, name in names.items()}
print("itanium-demangler 1.1:", seen)
assert seen == {
    "unnamed": "_GLOBAL__N_1::kernel(float*)",
    "negative": "void kernel<(int)n1>()",
    "pack": "void kernel<int, float>"
    "(<Node expand_arg_pack <Node tpl_arg_pack (<Node builtin 'int'>, <Node builtin 'float'>)>>)",
    "lambda": "NotImplementedError",
    "half": "KeyError",
    "not mangled": "None",
}
EOF
