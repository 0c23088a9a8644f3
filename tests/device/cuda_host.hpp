// Runs CUDA kernels on the host: every thread of a block is a coroutine, the blocks run
// one after another. Barriers and shuffles switch to the next thread, in a fixed order,
// so that a missing barrier shows in the same way each time.
#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

struct Dim {
    unsigned x = 1, y = 1, z = 1;
};

static Dim blockDim, gridDim, blockIdx, threadIdx;

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

namespace host {

struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    Dim index;
    bool done;
};

static std::vector<Thread> threads;
static ucontext_t scheduler;
static unsigned current;
static std::vector<unsigned> block_arrivals, warp_arrivals, block_turns, warp_turns;
static std::vector<double> slots;

static void pause() { swapcontext(&threads[current].context, &scheduler); }

static void barrier(unsigned& arrived, unsigned& turn, unsigned count) {
    const unsigned mine = turn;
    if (++arrived == count) {
        arrived = 0;
        turn++;
        return;
    }
    while (turn == mine) pause();
}

static unsigned warp_size(unsigned warp) {
    const unsigned left = threads.size() - warp * 32;
    return left < 32 ? left : 32;
}

}  // namespace host

static void __syncthreads() {
    host::barrier(host::block_arrivals[0], host::block_turns[0], host::threads.size());
}

static void __syncwarp(unsigned = 0xffffffffu) {
    const unsigned warp = host::current / 32;
    host::barrier(host::warp_arrivals[warp], host::warp_turns[warp], host::warp_size(warp));
}

static int __syncthreads_or(int x) {
    static int any;
    __syncthreads();
    any = 0;
    __syncthreads();
    any |= x;
    __syncthreads();
    return any;
}

template <typename T>
static T __shfl_sync(unsigned, T x, int lane, int = 32) {
    static_assert(sizeof(T) <= sizeof(double));
    std::memcpy(&host::slots[host::current], &x, sizeof(T));
    __syncwarp();
    T y;
    std::memcpy(&y, &host::slots[host::current / 32 * 32 + lane % 32], sizeof(T));
    __syncwarp();
    return y;
}

template <typename T>
static T __shfl_xor_sync(unsigned mask, T x, int lanes, int = 32) {
    return __shfl_sync(mask, x, int(host::current % 32) ^ lanes);
}

static bool __any_sync(unsigned mask, bool x) {
    int any = 0;
    for (unsigned lane = 0; lane < host::warp_size(host::current / 32); lane++)
        any |= __shfl_sync(mask, int(x), lane);
    return any;
}

static float __int_as_float(int bits) {
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
}

static float rsqrtf(float x) { return 1 / std::sqrt(x); }
static double rsqrt(double x) { return 1 / std::sqrt(x); }
using std::ldexp;

__align__(16) char bytes[1 << 20];  // the block's shared memory

#include SOURCE

namespace host {

static void (*body)();

static void enter() {
    body();
    threads[current].done = true;
    pause();
}

template <typename... A, std::size_t... I>
static void call(void (*kernel)(A...), const long long* arguments,
                 std::index_sequence<I...>) {
    kernel((A)arguments[I]...);
}

template <typename... A>
static void launch(const long long* shape, void (*kernel)(A...),
                   const long long* arguments) {
    gridDim = {unsigned(shape[0]), unsigned(shape[1]), 1};
    blockDim = {unsigned(shape[2]), unsigned(shape[3]), 1};
    const unsigned count = blockDim.x * blockDim.y;
    if (shape[4] > (long long)sizeof(bytes)) std::abort();
    std::memset(bytes, 0x7f, sizeof(bytes));
    slots.assign(count, 0);
    threads.resize(count);
    static void (*the_kernel)(A...);
    static const long long* the_arguments;
    the_kernel = kernel;
    the_arguments = arguments;
    body = [] { call(the_kernel, the_arguments, std::index_sequence_for<A...>()); };
    for (unsigned y = 0; y < gridDim.y; y++)
        for (unsigned x = 0; x < gridDim.x; x++) {
            blockIdx = {x, y, 0};
            block_arrivals.assign(1, 0);
            block_turns.assign(1, 0);
            warp_arrivals.assign((count + 31) / 32, 0);
            warp_turns.assign((count + 31) / 32, 0);
            for (unsigned t = 0; t < count; t++) {
                Thread& thread = threads[t];
                thread.stack.resize(512 << 10);
                thread.index = {t % blockDim.x, t / blockDim.x, 0};
                thread.done = false;
                getcontext(&thread.context);
                thread.context.uc_stack.ss_sp = thread.stack.data();
                thread.context.uc_stack.ss_size = thread.stack.size();
                thread.context.uc_link = nullptr;
                makecontext(&thread.context, enter, 0);
            }
            for (bool live = true; live;) {
                live = false;
                for (unsigned t = 0; t < count; t++) {
                    if (threads[t].done) continue;
                    current = t;
                    threadIdx = threads[t].index;
                    swapcontext(&scheduler, &threads[t].context);
                    live = live || !threads[t].done;
                }
            }
        }
}

}  // namespace host

extern "C" void host_entry(const long long* shape, const long long* arguments) {
    host::launch(shape, ENTRY, arguments);
}
