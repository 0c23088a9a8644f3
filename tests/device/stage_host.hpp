// Runs the kernels of stage.cu on the host: one std::thread per CUDA thread of a block,
// the blocks one after another. Compiled with the same -DREAL and -DPARTS.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <thread>
#include <vector>

struct Dim {
    unsigned x = 0, y = 0, z = 0;
};

static Dim blockDim, gridDim;
static thread_local Dim threadIdx, blockIdx;
static std::barrier<>* block_barrier;

#define __global__
#define __device__ static inline
#define __shared__ static

using std::max;

static void __syncthreads() { block_barrier->arrive_and_wait(); }

static void atomicMax(int* target, int value) {
    std::atomic_ref<int> cell(*target);
    for (int old = cell; old < value && !cell.compare_exchange_weak(old, value);) {
    }
}

static double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }

#include STAGE

template <typename Kernel, typename... Arguments>
static void launch(const int* shape, Kernel kernel, Arguments... arguments) {
    gridDim = {unsigned(shape[0]), unsigned(shape[1]), 1};
    blockDim = {unsigned(shape[2]), unsigned(shape[3]), 1};
    const unsigned threads = blockDim.x * blockDim.y;
    std::barrier<> barrier(threads);
    block_barrier = &barrier;
    auto run = [&](unsigned thread) {
        threadIdx = {thread % blockDim.x, thread / blockDim.x, 0};
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x; x++) {
                blockIdx = {x, y, 0};
                kernel(arguments...);
                barrier.arrive_and_wait();
            }
    };
    std::vector<std::thread> pool;
    for (unsigned thread = 0; thread < threads; thread++) pool.emplace_back(run, thread);
    for (auto& thread : pool) thread.join();
}

extern "C" void host_prepare(
    const int* shape, const char* a, i64 sb, i64 sr, i64 sc, Element* out, int* flags,
    Element** pointers, i64 batch, i64 rows, i64 columns, i64 part, i64 mirror,
    i64 phases) {
    launch(shape, prepare, a, sb, sr, sc, out, flags, pointers, batch, rows, columns,
           part, mirror, phases);
}

extern "C" void host_arrange(const int* shape, const REAL* values, REAL* sorted, int* order,
                             i64 batch, i64 n) {
    launch(shape, arrange, values, sorted, order, batch, n);
}

extern "C" void host_emit(
    const int* shape, const Element* in, i64 sb, i64 sr, i64 sc, Element* out,
    const int* order, i64 batch, i64 rows, i64 columns, i64 part, i64 conjugated,
    const int* flags, const int* statuses, int* info) {
    launch(shape, emit, in, sb, sr, sc, out, order, batch, rows, columns, part,
           conjugated, flags, statuses, info);
}
