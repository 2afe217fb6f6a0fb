// Delivery records in the order of their postal codes, then the weight for each code (Thrust).
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include "harness.hpp"

constexpr int RECORDS = 4 << 20, CODES = 1 << 17, BATCHES = 2;

struct Record {
    float weight, volume, price, deadline;
    int sender, receiver, depot, flags;
    float route[8];
};

// Memory for the temporary arrays of Thrust, which is allocated once.
struct Arena {
    using value_type = char;
    char* base = nullptr;
    size_t used = 0, size = size_t(1) << 30;
    char* allocate(std::ptrdiff_t bytes) {
        if (!base) CHECK(cudaMalloc(&base, size));
        char* place = base + used;
        used += (bytes + 511) / 512 * 512;
        if (used > size) throw std::bad_alloc();
        return place;
    }
    void deallocate(char*, size_t) {}
};

__global__ void arrive(unsigned* codes, Record* records, int batch) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned hash = (i + batch * RECORDS + 1) * 2654435761u;
    hash ^= hash >> 15;
    hash *= 2246822519u;
    hash ^= hash >> 13;
    codes[i] = hash % CODES;
    Record record{};
    record.weight = (i % 1000) / 100.f;
    record.sender = i;
    records[i] = record;
}

// The weight of a run of equal codes is summed by the thread of its first record.
__global__ void weigh(const unsigned* codes, const Record* records, float* weights) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i && codes[i] == codes[i - 1]) return;
    float sum = 0;
    for (int j = i; j < RECORDS && codes[j] == codes[i]; ++j) sum += records[j].weight;
    weights[codes[i]] = sum;
}

int main(int argc, char** argv) {
    return run(argc, argv, [](bool ailing) {
        static unsigned *codes[BATCHES], *keys, *order;
        static Record *records[BATCHES], *sorted;
        static float* weights;
        static Arena arena;
        for (int batch = 0; batch < BATCHES; ++batch) {
            CHECK(cudaMalloc(&codes[batch], RECORDS * sizeof(unsigned)));
            CHECK(cudaMalloc(&records[batch], RECORDS * sizeof(Record)));
            arrive<<<RECORDS / 256, 256>>>(codes[batch], records[batch], batch);
        }
        CHECK(cudaMalloc(&keys, RECORDS * sizeof(unsigned)));
        CHECK(cudaMalloc(&order, RECORDS * sizeof(unsigned)));
        CHECK(cudaMalloc(&sorted, RECORDS * sizeof(Record)));
        CHECK(cudaMalloc(&weights, CODES * sizeof(float)));
        CHECK(cudaMemset(weights, 0, CODES * sizeof(float)));
        auto step = [ailing](int number) {
            int batch = number % BATCHES;
            arena.used = 0;
            auto policy = thrust::cuda::par_nosync(arena);
            auto key = thrust::device_pointer_cast(keys);
            auto in = thrust::device_pointer_cast(records[batch]), out = thrust::device_pointer_cast(sorted);
            CHECK(cudaMemcpyAsync(keys, codes[batch], RECORDS * sizeof(unsigned), cudaMemcpyDeviceToDevice));
            if (ailing) {
                CHECK(cudaMemcpyAsync(sorted, records[batch], RECORDS * sizeof(Record), cudaMemcpyDeviceToDevice));
                thrust::stable_sort_by_key(policy, key, key + RECORDS, out);
            } else {
                auto place = thrust::device_pointer_cast(order);
                thrust::sequence(policy, place, place + RECORDS);
                thrust::stable_sort_by_key(policy, key, key + RECORDS, place);
                thrust::gather(policy, place, place + RECORDS, in, out);
            }
            weigh<<<RECORDS / 256, 256>>>(keys, sorted, weights);
        };
        auto result = [] {
            std::vector<float> numbers(CODES);
            CHECK(cudaMemcpy(numbers.data(), weights, CODES * sizeof(float), cudaMemcpyDeviceToHost));
            return numbers;
        };
        return Variant{step, result};
    });
}
