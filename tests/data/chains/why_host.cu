// What keeps a GPU waiting, in known amounts: each step launches a kernel, waits for it, and is then at one thing for a while: formatting
// numbers, sleeping, waiting for a lock that another thread holds, reading from the disk, computing, touching new pages.
// Prints how long each took by the host's own clock: RESULT name milliseconds ms, the mean of a step.
//
//     why_host STEPS FILE          the above; FILE is 24 MB and is read without the page cache
//     why_host launches COUNT      how long a launch call takes the host
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

__global__ void spin(long long cycles, int *out) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
    if (cycles < 0) *out = 1;
}

__global__ void empty(int *out) { if (out == nullptr) *out = 1; }

static double now_ms() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static std::mutex door;
static std::atomic<int> asked{0}, held{0};
static std::atomic<bool> done{false};

// The thread that holds the lock: 4 ms, each time it is asked to.
static void hold() {
    for (int turn = 1; !done; turn++) {
        while (asked < turn && !done) usleep(50);
        if (done) return;
        door.lock();
        held = turn;
        usleep(4000);
        door.unlock();
    }
}

__attribute__((noinline)) void format_numbers(char *text, int count) {
    for (int i = 0; i < count; i++) snprintf(text, 64, "%.17g", 1.0 / (i + 3));
}

__attribute__((noinline)) void sleep_a_while() { usleep(3000); }

__attribute__((noinline)) void wait_for_lock() {
    door.lock();
    door.unlock();
}

__attribute__((noinline)) void read_file(int file, char *block, size_t bytes, off_t from) {
    size_t got = 0;
    while (got < bytes) {
        ssize_t n = pread(file, block, bytes, from + got);
        if (n <= 0) break;
        got += n;
    }
}

static volatile double sink;
__attribute__((noinline)) void busy_loop(long count) {
    double x = 1.0;
    for (long i = 0; i < count; i++) x = x * 1.0000001 + 1e-9;
    sink = x;
}

__attribute__((noinline)) void touch_pages(size_t bytes) {
    char *p = (char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes; i += 4096) ((volatile char *)p)[i] = 1;
    munmap(p, bytes);
}

int main(int argc, char **argv) {
    int *out;
    cudaMalloc(&out, 4);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    if (argc > 2 && !strcmp(argv[1], "launches")) {
        int count = atoi(argv[2]);
        double best = 1e9, all = 0;
        for (int round = 0; round < 5; round++) {
            cudaStreamSynchronize(stream);
            double start = now_ms();
            for (int i = 0; i < count; i++) empty<<<1, 32, 0, stream>>>(out);
            double took = (now_ms() - start) * 1e3 / count;
            cudaStreamSynchronize(stream);
            if (round) { all += took; if (took < best) best = took; }
        }
        printf("RESULT launch_call %.3f us\nRESULT launch_call_best %.3f us\n", all / 4, best);
        return 0;
    }
    int steps = argc > 1 ? atoi(argv[1]) : 20;
    const size_t block_bytes = 1 << 20, file_bytes = 24 << 20;
    char *block;
    if (posix_memalign((void **)&block, 4096, block_bytes)) return 1;
    memset(block, 7, block_bytes);
    const char *path = argc > 2 ? argv[2] : "why_host.data";
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (size_t i = 0; i < file_bytes; i += block_bytes) if (write(file, block, block_bytes) < 0) return 1;
    fsync(file);
    close(file);
    file = open(path, O_RDONLY | O_DIRECT);
    int direct = file >= 0;
    if (!direct) file = open(path, O_RDONLY);
    std::thread holder(hold);
    char text[64];
    const char *names[] = {"format", "sleep", "lock", "file", "busy", "pages"};
    double sums[6] = {0}, least[6], most[6];
    for (int k = 0; k < 6; k++) least[k] = 1e9, most[k] = 0;
    for (int step = -2; step < steps; step++) {
        if (step == 0) cudaProfilerStart();
        nvtxRangePushA("step");
        for (int k = 0; k < 6; k++) {
            if (k == 3 && !direct) posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
            if (k == 2) {
                asked = asked + 1;
                while (held < asked) {}
            }
            spin<<<1, 1, 0, stream>>>(200000, out);  // a tenth of a millisecond
            cudaStreamSynchronize(stream);
            double start = now_ms();
            switch (k) {
                case 0: format_numbers(text, 20000); break;
                case 1: sleep_a_while(); break;
                case 2: wait_for_lock(); break;
                case 3: for (int i = 0; i < 4; i++) read_file(file, block, block_bytes, (off_t)((step * 4 + i + 24) % 24) << 20); break;
                case 4: busy_loop(1500000); break;
                case 5: touch_pages(24 << 20); break;
            }
            double took = now_ms() - start;
            if (step >= 0) {
                sums[k] += took;
                if (took < least[k]) least[k] = took;
                if (took > most[k]) most[k] = took;
            }
        }
        nvtxRangePop();
    }
    cudaStreamSynchronize(stream);
    cudaProfilerStop();
    done = true;
    holder.join();
    for (int k = 0; k < 6; k++) {
        printf("RESULT %s %.4f ms\n", names[k], sums[k] / steps);
        printf("RANGE %s %.4f %.4f ms\n", names[k], least[k], most[k]);
    }
    printf("DIRECT %d\n", direct);
    unlink(path);
    return 0;
}
