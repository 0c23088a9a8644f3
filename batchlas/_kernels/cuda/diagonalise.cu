// From a tridiagonal matrix and the Q that made it so to values and vectors, in one
// kernel, for small orders. The first warp finds the values, a thread per matrix, and
// leaves the rotations of a sweep in shared memory; meanwhile the other warps turn the
// vectors by those of the sweep before.
//
// -DTRIDIAGONAL: order N. A block has LANES matrices, and lines as columns.cuh has them,
//   whole ones (SEGMENTS = 1): TILE per matrix.
#define GROUP (TILE / DEEP)  // threads per matrix
#define STEP (N | 1)
#define MOST_SWEEPS (30 * N + 8)

struct Sweep {
    Pair slots[PART][LANES];
    Range ranges[LANES];
};

// Sweep over the next rows of a matrix, if there are any left.
__device__ inline Range next_sweep(Window& now, REAL* d, REAL* e, REAL floor, Pair* slots) {
    advance(now, d, e, floor);
    const int top = now.runs ? now.top : PART, bottom = now.runs ? now.bottom : PART;
    for (int j = 0; j < PART; j++)
        if (j <= top || j > bottom) slots[j * LANES] = {(REAL)1, (REAL)0};
    if (!now.runs) return {0, 0};
    narrow(now, e, sweep(d, e, top, bottom, floor, slots + (top + 1) * LANES));
    return {top + 1, bottom + 1};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    diagonalise(REAL* q, const REAL* diagonals, REAL* values, const int* exponents, int* info,
                i64 batch) {
    Sweep* sweeps = (Sweep*)shared_memory();  // before and after, lines lie there
    REAL* numbers = (REAL*)(shared_memory() + STAGED_BYTES);
    int* orders = (int*)(numbers + (2 * N + 2) * LANES);
    const bool finds = threadIdx.x < 32;
    const int lane = threadIdx.x % LANES;
    const int matrix = finds ? 0 : (threadIdx.x - 32) / GROUP;
    const int thread = threadIdx.x % GROUP, line = thread * DEEP;
    Element* tile = (Element*)shared_memory() + matrix * (TILE * STEP);
    REAL* d = numbers + lane;
    REAL* e = d + (N + 1) * LANES;  // the place before it is written too
    for (i64 first = (i64)blockIdx.x * LANES; first < batch; first += (i64)gridDim.x * LANES) {
        const int live = batch - first < LANES ? (int)(batch - first) : LANES;
        const bool turns = !finds && matrix < live;
        REAL* words = q + (first + matrix) * (N * N * PARTS);
        for (int w = threadIdx.x; w < live * 2 * N; w += THREADS) {
            const int b = w / (2 * N), i = w - b * (2 * N);
            numbers[(i < N ? i : i + 1) * LANES + b] = diagonals[first * 2 * N + w];
        }
        if (turns)
            for (int w = thread; w < N * N * PARTS; w += GROUP) {
                const int k = w / PARTS, i = k / N;
                copy_word((REAL*)tile + (i * STEP + k - i * N) * PARTS + (w - k * PARTS),
                          words + w);
            }
        wait_for_words();
        __syncthreads();
        Column z[PART];
        _Pragma("unroll") for (int k = 0; k < PART; k++)
            _Pragma("unroll") for (int l = 0; l < DEEP; l++)
                z[k].x[l] = turns && line + l < N && k < N ? tile[(line + l) * STEP + k] : zero();
        const bool mine = finds && threadIdx.x < live;
        const REAL floor = mine ? floor_of(d, e) : (REAL)0;
        Window now = {mine ? top_of(d, e, N - 1, floor) : 0, N - 1, mine};
        __syncthreads();
        bool more = true;
        for (int at = 0; more; at++) {
            bool found = false;
            if (finds && threadIdx.x < LANES) {
                Sweep& here = sweeps[at % 2];
                if (at == MOST_SWEEPS) now.runs = false;
                here.ranges[lane] = next_sweep(now, d, e, floor, &here.slots[0][lane]);
                found = now.runs;
            } else if (!finds && at > 0) {
                const Sweep& before = sweeps[(at - 1) % 2];
                step(z, z[0], &before.slots[0][matrix], before.ranges[matrix]);
            }
            more = __syncthreads_or(found);
        }
        if (mine) {
            const i64 b = first + threadIdx.x;
            sort_values(d, orders + lane);
            if (now.bottom > 0 && info[b] == 0) info[b] = N;
            const REAL up = power(exponents[b]);
            for (int j = 0; j < N; j++)
                values[b * N + j] = info[b] ? not_a_number() : D(j) * up;
        }
        if (turns)
            _Pragma("unroll") for (int k = 0; k < PART; k++)
                _Pragma("unroll") for (int l = 0; l < DEEP; l++)
                    if (k < N && line + l < N) tile[(line + l) * STEP + k] = z[k].x[l] + zero();
        __syncthreads();
        if (turns) {
            const bool failed = info[first + matrix] != 0;
            for (int w = thread; w < N * N * PARTS; w += GROUP) {
                const int k = w / PARTS, i = k / N, j = k - i * N;
                const int from = (i * STEP + orders[j * LANES + matrix]) * PARTS + w - k * PARTS;
                words[w] = failed ? not_a_number() : ((const REAL*)tile)[from];
            }
        }
        __syncthreads();
    }
}
