// Writes down when a program that runs without nsys calls cudaProfilerStart and cudaProfilerStop, or opens and closes NVTX
// ranges of one name. CUDA loads it through CUDA_INJECTION64_PATH, NVTX through NVTX_INJECTION64_PATH.
//
// NSYS_INSIGHT_MARKS is the file to write, with the process id appended, NSYS_INSIGHT_RANGE the name of the ranges, and
// NSYS_INSIGHT_CUPTI the paths of CUPTI to try, separated by colons. A line is a letter and a time in ns: "b" begins, "e" ends.
// Only two calls of the driver are observed, so that launches take as long as without it.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

enum { MOST_MARKS = 200000 };

static struct {
    uint64_t time_ns;
    char kind;
} marks[MOST_MARKS];
static int mark_count;

static void add_mark(char kind) {
    struct timespec now;
    int place = __atomic_fetch_add(&mark_count, 1, __ATOMIC_RELAXED);
    if (place >= MOST_MARKS) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    marks[place].time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    marks[place].kind = kind;
}

__attribute__((destructor)) static void write_marks(void) {
    const char* path = getenv("NSYS_INSIGHT_MARKS");
    int count = mark_count < MOST_MARKS ? mark_count : MOST_MARKS;
    char name[4096];
    if (!path || !count) return;
    snprintf(name, sizeof name, "%s.%d", path, (int)getpid());
    FILE* file = fopen(name, "w");
    if (!file) return;
    for (int i = 0; i < count; ++i) fprintf(file, "%c %llu\n", marks[i].kind, (unsigned long long)marks[i].time_ns);
    fclose(file);
}

// CUPTI, as its ABI has been since CUDA 5: the numbers of a domain and of the two calls, and the first member of the data.
enum { DRIVER_API = 1, PROFILER_START = 308, PROFILER_STOP = 309, SITE_ENTER = 0, SITE_EXIT = 1 };

static void on_call(void* unused, int domain, uint32_t call, const int* site) {
    (void)unused;
    if (domain != DRIVER_API) return;
    if (call == PROFILER_START && *site == SITE_EXIT) add_mark('b');
    if (call == PROFILER_STOP && *site == SITE_ENTER) add_mark('e');
}

static void* open_cupti(void) {
    const char* names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    const char* paths = getenv("NSYS_INSIGHT_CUPTI");
    void* library = NULL;
    // The program's own comes first: a second copy would be another one.
    for (int i = 0; i < 3 && !library; ++i) library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    char* copy = paths ? strdup(paths) : NULL;
    for (char* path = copy ? strtok(copy, ":") : NULL; path && !library; path = strtok(NULL, ":"))
        library = dlopen(path, RTLD_NOW);
    for (int i = 0; i < 3 && !library; ++i) library = dlopen(names[i], RTLD_NOW);
    free(copy);
    return library;
}

int InitializeInjection(void) {
    static int is_done;
    void *library, *subscriber;
    if (is_done++ || getenv("NSYS_INSIGHT_RANGE") || !(library = open_cupti())) return 1;
    int (*subscribe)(void**, void (*)(void*, int, uint32_t, const int*), void*) = dlsym(library, "cuptiSubscribe");
    int (*enable)(uint32_t, void*, int, uint32_t) = dlsym(library, "cuptiEnableCallback");
    if (!subscribe || !enable || subscribe(&subscriber, on_call, NULL)) return 1;
    enable(1, subscriber, DRIVER_API, PROFILER_START);
    enable(1, subscriber, DRIVER_API, PROFILER_STOP);
    return 1;
}

// NVTX, as its ABI has been since version 2: numbers of tables and calls, and the members of the attributes up to the text.
enum { CALLBACKS = 1, CORE = 1, CORE2 = 5 };
enum { PUSH_EX = 8, PUSH_A = 9, PUSH_W = 10, POP = 11, DOMAIN_PUSH_EX = 4, DOMAIN_POP = 5 };
enum { ASCII = 1, UNICODE = 2, REGISTERED = 3 };

struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void* message;
};

static __thread int depth;
static __thread uint64_t is_named;  // a bit for each of the outer 64 levels

static int push(int is_same) {
    if (depth < 64) {
        is_named = (is_named & ~(1ull << depth)) | ((uint64_t)(is_same != 0) << depth);
        if (is_same) add_mark('b');
    }
    return depth++;
}

static int pop(void) {
    if (depth > 0 && --depth < 64 && is_named >> depth & 1) add_mark('e');
    return depth;
}

static int is_range(const char* text) { return text && !strcmp(text, getenv("NSYS_INSIGHT_RANGE")); }

static int is_wide_range(const wchar_t* text) {
    const char* name = getenv("NSYS_INSIGHT_RANGE");
    while (text && *name && *text == (unsigned char)*name) ++text, ++name;
    return text && !*name && !*text;
}

static int is_attributed_range(const struct attributes* a) {
    return a && ((a->message_type == ASCII && is_range(a->message)) ||
                 (a->message_type == UNICODE && is_wide_range(a->message)));
}

// Registered texts are handles: what NVTX calls with a text gets the text itself as the handle.
enum { REGISTER_A = 10 };
static void* register_text(void* domain, const char* text) {
    (void)domain;
    return strdup(text ? text : "");
}

static int push_attributes(const struct attributes* a) {
    return push(is_attributed_range(a) || (a && a->message_type == REGISTERED && is_range(a->message)));
}
static int push_text(const char* text) { return push(is_range(text)); }
static int push_wide(const wchar_t* text) { return push(is_wide_range(text)); }
static int push_in_domain(void* domain, const struct attributes* a) {
    (void)domain;
    return push_attributes(a);
}
static int pop_in_domain(void* domain) {
    (void)domain;
    return pop();
}

struct callbacks {
    size_t size;
    int (*find_table)(int module, void*** table, unsigned* size);
};

static void set(void** table, unsigned size, unsigned call, void* function) {
    if (call < size) *(void**)table[call] = function;
}

int InitializeInjectionNvtx2(const void* (*find_export)(uint32_t)) {
    const struct callbacks* callbacks = find_export(CALLBACKS);
    void** table;
    unsigned size;
    if (!callbacks || !getenv("NSYS_INSIGHT_RANGE")) return 0;
    if (callbacks->find_table(CORE, &table, &size)) {
        set(table, size, PUSH_EX, push_attributes);
        set(table, size, PUSH_A, push_text);
        set(table, size, PUSH_W, push_wide);
        set(table, size, POP, pop);
    }
    if (callbacks->find_table(CORE2, &table, &size)) {
        set(table, size, DOMAIN_PUSH_EX, push_in_domain);
        set(table, size, DOMAIN_POP, pop_in_domain);
        set(table, size, REGISTER_A, register_text);
    }
    return 1;
}
