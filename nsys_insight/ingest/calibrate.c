// Prints what calls of the CUDA driver take on this machine, in ns of the host: "launch 2150.3", "memset …", "copy …". Each
// time is the median of repetitions of the same call in a loop, so that nsys around this program shows what nsys adds.
//
// CUDA is opened at run time: neither headers nor nvcc are needed. The kernel does nothing.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REPETITIONS = 101, CALLS = 400, COPY_BYTES = 1024 };

static const char KERNEL[] = ".version 6.4\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n";

static void* library;

static void* find(const char* name) {
    void* function = dlsym(library, name);
    if (function) return function;
    fprintf(stderr, "libcuda has no %s\n", name);
    exit(3);
}

static void check(int status, const char* call) {
    if (!status) return;
    fprintf(stderr, "%s returned error %d\n", call, status);
    exit(3);
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
    return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static int (*launch_kernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
static int (*set_memory)(uint64_t, unsigned char, size_t, void*);
static int (*copy_to_gpu)(uint64_t, const void*, size_t, void*);
static void *kernel, *pinned;
static uint64_t memory;

static int launch(void) { return launch_kernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL); }
static int clear(void) { return set_memory(memory, 0, COPY_BYTES, NULL); }
static int copy(void) { return copy_to_gpu(memory, pinned, COPY_BYTES, NULL); }

static void measure(const char* name, int (*call)(void), int (*wait)(void)) {
    double times[REPETITIONS];
    for (int repetition = 0; repetition <= REPETITIONS; ++repetition) {
        double begin_ns = now_ns();
        for (int i = 0; i < CALLS; ++i) check(call(), name);
        // The first repetition warms up.
        if (repetition) times[repetition - 1] = (now_ns() - begin_ns) / CALLS;
        check(wait(), "cuCtxSynchronize");
    }
    qsort(times, REPETITIONS, sizeof *times, compare);
    printf("%s %.1f\n", name, times[REPETITIONS / 2]);
}

int main(void) {
    void *context, *module;
    int device;
    char name[256];
    if (!(library = dlopen("libcuda.so.1", RTLD_NOW))) {
        fprintf(stderr, "there is no libcuda.so.1\n");
        return 3;
    }
    check(((int (*)(unsigned))find("cuInit"))(0), "cuInit");
    check(((int (*)(int*, int))find("cuDeviceGet"))(&device, 0), "cuDeviceGet");
    check(((int (*)(char*, int, int))find("cuDeviceGetName"))(name, sizeof name, device), "cuDeviceGetName");
    check(((int (*)(void**, int))find("cuDevicePrimaryCtxRetain"))(&context, device), "cuDevicePrimaryCtxRetain");
    check(((int (*)(void*))find("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
    check(((int (*)(void**, const void*))find("cuModuleLoadData"))(&module, KERNEL), "cuModuleLoadData");
    check(((int (*)(void**, void*, const char*))find("cuModuleGetFunction"))(&kernel, module, "nothing"), "cuModuleGetFunction");
    check(((int (*)(uint64_t*, size_t))find("cuMemAlloc_v2"))(&memory, COPY_BYTES), "cuMemAlloc");
    check(((int (*)(void**, size_t))find("cuMemAllocHost_v2"))(&pinned, COPY_BYTES), "cuMemAllocHost");
    *(void**)&launch_kernel = find("cuLaunchKernel");
    *(void**)&set_memory = find("cuMemsetD8Async");
    *(void**)&copy_to_gpu = find("cuMemcpyHtoDAsync_v2");
    int (*wait)(void) = (int (*)(void))find("cuCtxSynchronize");
    printf("gpu %s\n", name);
    measure("launch", launch, wait);
    measure("memset", clear, wait);
    measure("copy", copy, wait);
    return 0;
}
