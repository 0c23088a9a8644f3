// From a tridiagonal or bidiagonal matrix to its values, one thread per matrix; the
// rotations (see chain.cuh) are written down for `rotate`.

struct Progress {
    int bottom;  // values below are done
    int sweeps;  // of this round
    bool full;
};

// The largest of a block's numbers; it is one warp or a part of one.
__device__ inline int block_max(int x) {
    const unsigned mask = 0xffffffffu >> (32 - LANES);
    for (int step = LANES / 2; step > 0; step /= 2) {
        const int other = __shfl_xor_sync(mask, x, step);
        x = other > x ? other : x;
    }
    return x;
}

// Sweep until every off-diagonal element is small or the room is full.
__device__ inline Progress iterate(REAL* d, REAL* e, bool runs, int bottom, REAL floor,
                                   Pair* rotations, i64* sweeps) {
    Window now = {runs ? top_of(d, e, bottom, floor) : 0, bottom, runs};
    Progress all = {bottom, 0, false};
    i64 start = 0;
#if defined(BIDIAGONAL)
    REAL least = 0;  // the smallest diagonal element of these rows, once it is known
    bool is_known = false;
#endif
    while (true) {
        const bool is_new = advance(now, d, e, floor);
        const int count = now.runs ? now.bottom - now.top : 0, longest = block_max(count);
        if (longest == 0) break;
        if (start + longest > ROOM || all.sweeps == TURNS) {
            all.full = now.runs;
            break;
        }
        if (VECTORS) sweeps[all.sweeps * LANES] = SWEEP(start, now.top, count);
        if (now.runs) {
#if defined(TRIDIAGONAL)
            (void)is_new;
            const int split =
                sweep(d, e, now.top, now.bottom, floor, rotations + start * LANES);
#else
            if (is_new || !is_known) {
                least = infinity();
                for (int i = now.top; i <= now.bottom; i++)
                    if (size_of(D(i)) < least) least = size_of(D(i));
                is_known = true;
            }
            const int split = sweep(d, e, now.top, now.bottom, floor, least,
                                    rotations + start * 2 * LANES);
#endif
            narrow(now, e, split);
        }
        start += longest;
        all.sweeps++;
    }
    all.bottom = now.bottom;
    return all;
}

// `bottoms` and `floors` carry a matrix over rounds; `orders` receives where each value
// came from, with a minus sign (less one) where it changed its own. `counts` receives
// the sweeps of this round. In the last round what still runs has failed.
extern "C" __global__ void __launch_bounds__(LANES)
    values(REAL* diagonals, REAL* values_, REAL* rotations, i64* sweeps, int* counts,
           int* orders, int* states, int* bottoms, REAL* floors, const int* exponents,
           int* info, i64 round, i64 last_round, i64 batch) {
    REAL* d = (REAL*)shared_memory() + threadIdx.x;
    REAL* e = d + (N + 1) * LANES;  // the place before it is written too
    int* order = (int*)((REAL*)shared_memory() + (2 * N + 2) * LANES) + threadIdx.x;
    for (i64 first = (i64)blockIdx.x * LANES; first < batch;
         first += (i64)gridDim.x * LANES) {
        const i64 b = first + threadIdx.x;
        const int live = batch - first < LANES ? (int)(batch - first) : LANES;
        bool runs = b < batch;
        if (round > 0 && runs) {
            runs = states[b] == RUNNING;
            if (!runs) states[b] = FINISHED;
        }
        if (!__syncthreads_or(runs)) continue;
        for (int w = threadIdx.x; w < live * 2 * N; w += LANES) {
            const int matrix = w / (2 * N), i = w - matrix * (2 * N);
            ((REAL*)shared_memory())[(i < N ? i : i + 1) * LANES + matrix] =
                diagonals[first * 2 * N + w];
        }
        __syncthreads();
        REAL floor = 0;
        int bottom = N - 1;
        if (runs && round == 0) {
            floor = floor_of(d, e);
            floors[b] = floor;
        } else if (runs) {
            floor = floors[b];
            bottom = bottoms[b];
        }
        Pair* list = (Pair*)rotations + (first * ROOM + threadIdx.x) * (NUMBERS / 2);
        const Progress now = iterate(d, e, runs && bottom > 0, bottom, floor, list,
                                     sweeps + first * TURNS + threadIdx.x);
        if (!runs) continue;
        counts[b] = now.sweeps;
        if (now.full) {
            for (int i = 0; i < N; i++) {
                diagonals[b * 2 * N + i] = D(i);
                diagonals[b * 2 * N + N + i] = E(i);
            }
            bottoms[b] = now.bottom;
            states[b] = RUNNING;
            if (round == last_round && info[b] == 0) info[b] = N;
            if (round < last_round) continue;
        }
        states[b] = CONVERGED;
#if defined(BIDIAGONAL)
        for (int i = 0; i < N; i++) {
            // The sign is kept beside the value while they are sorted.
            E(i) = D(i) < 0 ? (REAL)-1 : (REAL)1;
            D(i) = size_of(D(i));
        }
#endif
        sort_values(d, order);
        const REAL up = power(exponents[b]);
        const bool failed = info[b] != 0;
        for (int j = 0; j < N; j++) {
            values_[b * N + j] = failed ? not_a_number() : D(j) * up;
            int from = order[j * LANES];
#if defined(BIDIAGONAL)
            if (E(from) < 0) from = -1 - from;
#endif
            if (VECTORS) orders[b * N + j] = from;
        }
    }
}
