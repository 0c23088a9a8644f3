// What rotations.cu does, for lines that fit in registers: a thread has DEEP lines, or
// SEGMENTS threads beside each other have a part of PART elements each. The rotations
// of a sweep go through shared memory, with rotations by nothing where the sweep has
// none, so that every register has a name; pieces of a sweep without any are left out.
// A rotation by nothing can turn -0 into 0, and whether one is done depends on other
// matrices: in the end there is no -0.
//
// A sweep runs along a line, and a line's parts work on SEGMENTS sweeps at a time: part
// g on the one that part 0 had g steps before. What a sweep carries over the edge goes
// to the next part for its next step, which at the beginning of that step gives back
// the last element of this part.
//
// Lines of WIDTH elements, HEIGHT of them per matrix; the first N of each are turned.
// A line is a row, or a column (ACROSS) of the array. TILE lines of a matrix are in a
// warp, which does not wait for others. A rotation is NUMBERS numbers of which two from
// OFFSET on are ours. SIGNED says that a changed sign of a value is made good.
#define GROUP (TILE / DEEP * SEGMENTS)
#define MATRICES (32 / GROUP)
#define STEP (N | 1)
#define LINES_SIZE (TILE * STEP + 1)  // one more: matrices in different banks
#define CHUNK 4  // PART is a multiple
static_assert(SEGMENTS == 1 || PART > CHUNK, "what a part gives back comes before its end");
#define SLOTS (PART * SEGMENTS)
#define SHARE ((SLOTS + GROUP - 1) / GROUP)
#define APART (LANES * NUMBERS / 2)  // pairs from one rotation to the next
#define ALL 0xffffffffu

// The slots that a sweep fills; slot j + 1 has the rotation of elements j and j + 1.
struct Range {
    int from, to;
};

struct Staged {
    Pair slots[SEGMENTS][SLOTS];  // a sweep after the other, in turns
    Range ranges[SEGMENTS];
};

// Takes a matrix's rotations from device memory, a sweep ahead of their use.
struct Reader {
    const Pair* list;
    const i64* sweeps;
    int left;
    i64 after;
    Range range;
    Pair turns[SHARE];

    __device__ void open(const Pair* rotations, const i64* first, int sweeps_in_all) {
        list = rotations;
        sweeps = first;
        left = sweeps_in_all;
        after = left > 0 ? sweeps[0] : 0;
    }

    // Fetch this thread's share of the next sweep.
    __device__ void fetch(int thread) {
        const i64 sweep = after;
        const int row = ROW_OF(sweep), count = left > 0 ? COUNT_OF(sweep) : 0;
        range.from = count ? row + 1 : 0;
        range.to = count ? row + 1 + count : 0;
        const Pair* first = list + (i64)(START_OF(sweep) - 1 - row) * APART;
        _Pragma("unroll") for (int u = 0; u < SHARE; u++) {
            const int slot = thread + u * GROUP;
            turns[u] = {(REAL)1, (REAL)0};
            if (slot >= range.from && slot < range.to) turns[u] = first[(i64)slot * APART];
        }
        sweeps += LANES;
        if (--left > 0) after = sweeps[0];
    }

    __device__ void stage(Staged& staged, int place, int thread) const {
        _Pragma("unroll") for (int u = 0; u < SHARE; u++)
            if (SLOTS % GROUP == 0 || thread + u * GROUP < SLOTS)
                staged.slots[place][thread + u * GROUP] = turns[u];
        if (thread == 0) staged.ranges[place] = range;
    }
};

__device__ inline Element from_lane(Element x, int lane) {
#if PARTS == 2
    return {__shfl_sync(ALL, x.re, lane), __shfl_sync(ALL, x.im, lane)};
#else
    return __shfl_sync(ALL, x, lane);
#endif
}

// Of each of DEEP lines, one element of this thread.
struct Column {
    Element x[DEEP];
};

__device__ inline Column from_lane(const Column& column, int lane) {
    Column found;
    _Pragma("unroll") for (int l = 0; l < DEEP; l++)
        found.x[l] = from_lane(column.x[l], lane);
    return found;
}

// x, y = kept, carried
__device__ inline void turn(const Pair& r, Column& x, Column& y) {
    _Pragma("unroll") for (int l = 0; l < DEEP; l++) {
        const Element kept = x.x[l] * r.c + y.x[l] * r.s;
        y.x[l] = minus_product(y.x[l] * r.c, x.x[l], r.s);
        x.x[l] = kept;
    }
}

// One step: the parts `z` of lines times the rotations in `slots`. `x` is carried along.
__device__ inline Column step(Column (&z)[PART], Column x, const Pair* slots, Range range) {
    const int lane = threadIdx.x % 32;
    Column first = x;
    _Pragma("unroll") for (int k = 0; k < PART; k += CHUNK) {
        if (SEGMENTS > 1 && k == CHUNK) {
            const Column back = from_lane(first, (lane + 1) % 32);
            if (lane % SEGMENTS < SEGMENTS - 1) z[PART - 1] = back;
        }
        if (__any_sync(ALL, range.from < k + CHUNK && range.to > k)) {
            _Pragma("unroll") for (int u = k; u < k + CHUNK; u++) {
                Column y = z[u];
                if (SEGMENTS > 1 || u > 0) {
                    turn(slots[u], x, y);
                    if (u == 0) first = x;
                    else z[u - 1] = x;
                }
                x = y;
            }
        } else {
            if (k > 0) z[k - 1] = x;
            x = z[k + CHUNK - 1];
        }
    }
    z[PART - 1] = x;
    return SEGMENTS == 1 ? x : from_lane(x, (lane + 31) % 32);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rotate(REAL* q, const REAL* rotations, const i64* sweeps, const int* counts,
           const int* orders, const int* states, const int* info, i64 batch) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / GROUP, thread = lane % GROUP;
    const int segment = thread % SEGMENTS, line = thread / SEGMENTS * DEEP;
    Staged& staged = ((Staged*)shared_memory())[warp * MATRICES + group];
    Element* tile = (Element*)((Staged*)shared_memory() + THREADS / GROUP) +
                    (warp * MATRICES + group) * LINES_SIZE;
    const int start = blockIdx.y * TILE;
    const int lines = HEIGHT - start < TILE ? HEIGHT - start : TILE;
    for (i64 first = (i64)blockIdx.x * (THREADS / GROUP); first < batch;
         first += (i64)gridDim.x * (THREADS / GROUP)) {
        const i64 b = first + warp * MATRICES + group;
        const bool live = b < batch && states[b] != FINISHED;
        const bool is_done = live && states[b] == CONVERGED;
        if (!__any_sync(ALL, live)) continue;
        REAL* words = q + (b < batch ? b : 0) * ((i64)HEIGHT * WIDTH * PARTS);
        Reader reader;
        const i64 side = b / LANES * LANES;
        const int sweeps_in_all = live ? counts[b] : 0;
        reader.open((const Pair*)rotations +
                        (side * ROOM + (b - side)) * (NUMBERS / 2) + OFFSET / 2,
                    sweeps + side * TURNS + (b - side), sweeps_in_all);
        reader.fetch(thread);
        if (live)
            for (int e = thread; e < (ACROSS ? TILE : lines) * N; e += GROUP) {
                const int i = ACROSS ? e % TILE : e / N, j = ACROSS ? e / TILE : e - i * N;
                if (ACROSS && i >= lines) continue;
                const i64 at = ACROSS ? (i64)j * HEIGHT + start + i
                                      : (i64)(start + i) * WIDTH + j;
                tile[i * STEP + j] = element(words[at * PARTS], words[at * PARTS + PARTS - 1]);
            }
        _Pragma("unroll") for (int place = 0; place < SEGMENTS; place++) {
            for (int slot = thread; slot < SLOTS; slot += GROUP)
                staged.slots[place][slot] = {(REAL)1, (REAL)0};
            if (thread == 0) staged.ranges[place] = {0, 0};
        }
        __syncwarp();
        Column z[PART];
        _Pragma("unroll") for (int k = 0; k < PART; k++)
            _Pragma("unroll") for (int l = 0; l < DEEP; l++) {
            const int j = segment * PART + k;
            const bool is_there = live && line + l < lines && j < N;
            z[k].x[l] = is_there ? tile[(line + l) * STEP + j] : zero();
        }
        reader.stage(staged, 0, thread);
        __syncwarp();
        Column x = SEGMENTS == 1 ? z[0] : from_lane(z[PART - 1], (lane + 31) % 32);
        int place = 0;
        for (int at = 0; __any_sync(ALL, at < sweeps_in_all + SEGMENTS - 1); at++) {
            reader.fetch(thread);
            const int own = (place + SEGMENTS - segment) % SEGMENTS;
            Range range = staged.ranges[own];
            range.from -= segment * PART;
            range.to -= segment * PART;
            x = step(z, x, staged.slots[own] + segment * PART, range);
            place = (place + 1) % SEGMENTS;
            __syncwarp();
            reader.stage(staged, place, thread);
            __syncwarp();
        }
        _Pragma("unroll") for (int k = 0; k < PART; k++)
            _Pragma("unroll") for (int l = 0; l < DEEP; l++) {
            const int j = segment * PART + k;
            if (j < N) tile[(line + l) * STEP + j] = z[k].x[l] + zero();
        }
        __syncwarp();
        if (live) {
            const bool failed = is_done && info[b] != 0;
            const int* order = orders + b * N;
            const int width = failed ? WIDTH : N;  // what is beyond N stays as it is
            for (int e = thread; e < (ACROSS ? TILE * width : lines * width); e += GROUP) {
                const int i = ACROSS ? e % TILE : e / width;
                const int j = ACROSS ? e / TILE : e - i * width;
                if (ACROSS && i >= lines) continue;
                const i64 at = ACROSS ? (i64)j * HEIGHT + start + i
                                      : (i64)(start + i) * WIDTH + j;
                Element y = failed_element();
                if (!failed) {
                    int from = is_done ? order[j] : j;
                    const bool turned = from < 0;
                    if (turned) from = -1 - from;
                    y = tile[i * STEP + from];
                    if (SIGNED && turned) y = y * (REAL)-1;
                }
                words[at * PARTS] = real_part(y);
                if (PARTS == 2) words[at * PARTS + PARTS - 1] = imaginary_part(y);
            }
        }
        __syncwarp();
    }
}
