#!/usr/bin/env bash
# Question: which load instruction comes from ld.global with a cache operator?
# Guess:    none for .ca, which the PTX documentation calls the default; STRONG.GPU for .cg, EF for .cs, LU for .lu,
#           STRONG.SYS for .cv, CONSTANT for .nc.
# Seen:     nvidia-cuda-nvcc 13.5.37, nvidia-cuda-cuobjdump 13.5.37, sm_80, sm_90 and sm_100. As guessed, but .ca is no
#           default: it gives LDG.E.STRONG.SM, a load without an operator LDG.E. So does --def-load-cache=ca for all loads
#           of a file. .cv and a volatile load are alike, and .cg and a relaxed load of the GPU's scope.
# Meets:    whoever compares code before and after -Xptxas -dlcm=ca, or writes __ldca for a plain load: the instructions
#           are other ones. And whoever looks for volatile or atomic loads by STRONG: cache operators are among them.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37
export PATH="$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin):$PATH"
{
    printf '.version 8.6\n.target sm_80\n.address_size 64\n'
    for load in global global.ca global.cg global.cs global.lu global.cv global.nc volatile.global relaxed.gpu.global; do
        printf '.visible .entry %s(.param .u64 a) { .reg .b64 %%a; .reg .f32 %%f; ' "${load//./_}"
        printf 'ld.param.u64 %%a, [a]; ld.%s.f32 %%f, [%%a]; st.global.f32 [%%a+64], %%f; ret; }\n' "$load"
    done
} >loads.ptx
list_loads() {
    ptxas -arch=sm_"$1" ${2:+"$2"} loads.ptx -o loads.cubin
    cuobjdump -sass loads.cubin | sed -nE 's/.*Function : (.*)/\1/p; s/.*(LDG[.A-Z]*).*/\1/p' | paste -d' ' - - |
        LC_ALL=C sort | tr '\n' ','
}
seen=$(list_loads 90)
all=$(list_loads 90 --def-load-cache=ca)
echo "ptxas 13.5.37, sm_90: $seen with --def-load-cache=ca: ${all%%,*}"
expected="global LDG.E,global_ca LDG.E.STRONG.SM,global_cg LDG.E.STRONG.GPU,global_cs LDG.E.EF,"
expected="${expected}global_cv LDG.E.STRONG.SYS,global_lu LDG.E.LU,global_nc LDG.E.CONSTANT,relaxed_gpu_global LDG.E.STRONG.GPU,"
expected="${expected}volatile_global LDG.E.STRONG.SYS,"
for architecture in 80 90 100; do
    [ "$(list_loads $architecture)" = "$expected" ]
    [[ "$(list_loads $architecture --def-load-cache=ca)" == "global LDG.E.STRONG.SM,"* ]]
done
