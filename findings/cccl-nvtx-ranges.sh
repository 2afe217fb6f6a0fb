#!/usr/bin/env bash
# Question: which NVTX ranges does one call of thrust::sort on a vector of the host emit?
# Guess:    one, in a domain of CCCL.
# Seen:     nvidia-cuda-cccl 13.3.5.0.6, nvidia-nvtx 13.5.25, g++. Four, each within the one before: thrust::sort three
#           times, and thrust::stable_sort. They come from the headers, without a call of NVTX in the program, without
#           nvcc and a GPU. CCCL_DISABLE_NVTX leaves them out.
# Meets:    whoever sums ranges by name: one call of thrust::sort counts as three, with three times its time. And whoever
#           looks for the steps of a program in its ranges: work on the host that no GPU takes part in is among them.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-cccl==13.3.5.0.6 nvidia-nvtx==13.5.25 nvidia-cuda-runtime==13.5.37 \
    nvidia-cuda-crt==13.5.37
include=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/include)
# A tool that NVTX loads: it prints the beginning and the end of each range, indented by its depth.
cat >tool.cpp <<'EOF'
#include <cstdio>
#include <string>
#include <vector>
#include <nvtx3/nvToolsExt.h>

static std::vector<std::string> texts, domains;
static int depth;

static nvtxDomainHandle_t create_domain(const char *name) {
    domains.push_back(name);
    return (nvtxDomainHandle_t)domains.size();
}
static nvtxStringHandle_t register_text(nvtxDomainHandle_t, const char *text) {
    texts.push_back(text);
    return (nvtxStringHandle_t)texts.size();
}
static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range) {
    auto text = texts[(size_t)range->message.registered - 1];
    std::printf("%s %d %s\n", domains[(size_t)domain - 1].c_str(), ++depth, text.c_str());
    return depth;
}
static int pop(nvtxDomainHandle_t) { return depth--; }

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    auto callbacks = (const NvtxExportTableCallbacks *)get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_text;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
EOF
cat >sort.cpp <<'EOF'
#include <thrust/host_vector.h>
#include <thrust/sort.h>

int main() {
    thrust::host_vector<int> values(100, 3);
    thrust::sort(values.begin(), values.end());
}
EOF
g++ -std=c++17 -w -shared -fPIC -I"$include" tool.cpp -o libtool.so
build() {
    g++ -std=c++17 -w -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP "$@" -I"$include/cccl" -I"$include" sort.cpp \
        -o sort -ldl
}
build
sorting=$(NVTX_INJECTION64_PATH="$work/libtool.so" ./sort | tr '\n' ',')
build -DCCCL_DISABLE_NVTX
disabled=$(NVTX_INJECTION64_PATH="$work/libtool.so" ./sort | wc -l)
echo "CCCL 13.3.5.0.6, domain, depth and name: $sorting with CCCL_DISABLE_NVTX: $disabled"
expected="CCCL 1 thrust::sort,CCCL 2 thrust::sort,CCCL 3 thrust::sort,CCCL 4 thrust::stable_sort,"
[ "$sorting" = "$expected" ]
[ "$disabled" = 0 ]
