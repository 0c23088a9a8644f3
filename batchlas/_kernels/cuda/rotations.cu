// From a tridiagonal or bidiagonal matrix to its values: implicit QR. The chain of plane
// rotations is scalar work, so one thread does it for one matrix, and writes the
// rotations down; `rotate` then applies them to the rows of the vectors, which do not
// depend on each other.
//
// Room for rotations is limited, so both kernels run for several rounds: a matrix stops
// when its room is full and goes on in the next round. `states` says where it is.
//
// -DTRIDIAGONAL, -DBIDIAGONAL: the values (N of them), THREADS matrices per block,
//   ROOM rotations and TURNS sweeps per round; VECTORS says whether to write them down
// -DROTATE: apply the rotations at OFFSET of every NUMBERS to lines of N elements

enum State { RUNNING = 0, CONVERGED = 1, FINISHED = 2 };

// A sweep over the rows first .. first + count, as one number.
#define SWEEP(first, count) ((i64)(first) << 32 | (i64)(count))

struct Plane {
    REAL c, s, r;
};

// c f + s g = r, -s f + c g = 0; also where the squares underflow.
__device__ inline Plane plane_of(REAL f, REAL g) {
    REAL square = f * f + g * g, scale = 1;
    if (square < least_square()) {
        if (g == 0) return {(REAL)1, (REAL)0, f};
        const REAL most = larger(size_of(f), size_of(g));
        scale = power(exponent_of(most));
        f /= scale;
        g /= scale;
        square = f * f + g * g;
    }
    REAL inverse = inverse_root(square);
    inverse = inverse * ((REAL)1.5 - (REAL)0.5 * square * inverse * inverse);
    return {f * inverse, g * inverse, square * inverse * scale};
}

#if defined(TRIDIAGONAL) || defined(BIDIAGONAL)
// The numbers of a block's matrices are interleaved: a thread's own bank.
#define D(i) d[(i) * THREADS]
#define E(i) e[(i) * THREADS]

__device__ inline bool is_small(REAL e, REAL above, REAL below, REAL floor) {
    const REAL size = size_of(e);
    return size <= floor || size <= epsilon() * (size_of(above) + size_of(below));
}

// Order the values, the largest last or first, and say where each came from.
__device__ inline void sort_values(REAL* d, int* order) {
    for (int j = 0; j < N; j++) {
        const REAL x = D(j);
        int at = j;
        while (at > 0 && (DESCENDING ? D(at - 1) < x : D(at - 1) > x)) {
            D(at) = D(at - 1);
            order[at * THREADS] = order[(at - 1) * THREADS];
            at--;
        }
        D(at) = x;
        order[at * THREADS] = j;
    }
}

struct Progress {
    int bottom;     // values below are done
    i64 rotations;  // written down in this round
    int sweeps;
    bool full;
};

#if defined(TRIDIAGONAL)
#define NUMBERS 2

// One QR sweep over top .. bottom, shifted by the eigenvalue of the last 2 x 2 that is
// nearer to its last element.
__device__ inline void sweep(REAL* d, REAL* e, int top, int bottom, REAL* rotations) {
    const REAL last = D(bottom), edge = E(bottom - 1);
    const REAL half = (D(bottom - 1) - last) / (2 * edge);
    const REAL length = root(half * half + 1);
    // An enormous quotient is infinite here, and its inverse the zero that it means.
    REAL g = D(top) - last + edge / (half + (half < 0 ? -length : length));
    REAL s = 1, c = 1, p = 0;
    REAL next = D(top), off = E(top);
    for (int i = top; i < bottom; i++) {
        const REAL here = next, f = s * off, b = c * off;
        next = D(i + 1);
        off = i + 1 < bottom ? E(i + 1) : (REAL)0;
        const Plane plane = plane_of(g, f);
        c = plane.c;
        s = plane.s;
        if (i > top) E(i - 1) = plane.r;
        g = here - p;
        const REAL r = (next - g) * s + 2 * c * b;
        p = s * r;
        D(i) = g + p;
        g = c * r - b;
        if (VECTORS) {
            rotations[0] = c;
            rotations[1] = s;
            rotations += NUMBERS;
        }
    }
    D(bottom) = next - p;
    E(bottom - 1) = g;
}
#else
#define NUMBERS 4

// The smaller singular value of [[f, g], [0, h]].
__device__ inline REAL smaller_value(REAL f, REAL g, REAL h) {
    f = size_of(f), g = size_of(g), h = size_of(h);
    const REAL least = f < h ? f : h, most = larger(f, h);
    if (least == 0) return 0;
    const REAL sum = 1 + least / most, gap = (most - least) / most;
    if (g < most) {
        const REAL u = g / most * (g / most);
        return least * (2 / (root(sum * sum + u) + root(gap * gap + u)));
    }
    const REAL u = most / g;
    if (u == 0) return least * most / g;
    const REAL product = 1 / (root(1 + sum * u * (sum * u)) + root(1 + gap * u * (gap * u)));
    return 2 * (least * product) * u;
}

__device__ inline void note(REAL*& rotations, REAL c_right, REAL s_right, REAL c_left,
                            REAL s_left) {
    if (!VECTORS) return;
    rotations[0] = c_right;
    rotations[1] = s_right;
    rotations[2] = c_left;
    rotations[3] = s_left;
    rotations += NUMBERS;
}

// One sweep of Golub, Kahan and Reinsch, or that of Demmel and Kahan without a shift,
// which is the one to take where the block is singular or nearly so.
__device__ inline void sweep(REAL* d, REAL* e, int top, int bottom, bool is_singular,
                             REAL* rotations) {
    REAL shift = 0;
    const REAL first = D(top);
    if (!is_singular) {
        shift = smaller_value(D(bottom - 1), E(bottom - 1), D(bottom));
        const REAL ratio = shift / first;
        if (ratio * ratio < epsilon()) shift = 0;
    }
    if (shift == 0) {
        REAL c = 1, c_old = 1, s_old = 0;
        for (int i = top; i < bottom; i++) {
            const Plane right = plane_of(D(i) * c, E(i));
            if (i > top) E(i - 1) = s_old * right.r;
            const Plane left = plane_of(c_old * right.r, D(i + 1) * right.s);
            D(i) = left.r;
            c = right.c;
            c_old = left.c;
            s_old = left.s;
            note(rotations, right.c, right.s, left.c, left.s);
        }
        const REAL h = D(bottom) * c;
        D(bottom) = h * c_old;
        E(bottom - 1) = h * s_old;
        return;
    }
    REAL f = (size_of(first) - shift) * ((first < 0 ? (REAL)-1 : (REAL)1) + shift / first);
    REAL g = E(top), here = first, off = E(top);
    for (int i = top; i < bottom; i++) {
        const REAL next = D(i + 1);
        const Plane right = plane_of(f, g);
        if (i > top) E(i - 1) = right.r;
        f = right.c * here + right.s * off;
        off = right.c * off - right.s * here;
        const Plane left = plane_of(f, right.s * next);
        D(i) = left.r;
        f = left.c * off + left.s * (right.c * next);
        here = left.c * (right.c * next) - left.s * off;
        if (i + 1 < bottom) {
            const REAL after = E(i + 1);
            g = left.s * after;
            off = left.c * after;
        }
        note(rotations, right.c, right.s, left.c, left.s);
    }
    D(bottom) = here;
    E(bottom - 1) = f;
}
#endif

// Sweep until every off-diagonal element is small or the room is full.
__device__ inline Progress iterate(REAL* d, REAL* e, int bottom, REAL floor, REAL* rotations,
                                   i64* sweeps) {
    Progress now = {bottom, 0, 0, false};
    while (now.bottom > 0) {
        const int last = now.bottom;
        int top = last;
        REAL least = size_of(D(last));
        for (; top > 0; top--) {
            const REAL above = D(top - 1);
            if (is_small(E(top - 1), above, D(top), floor)) {
                E(top - 1) = 0;
                break;
            }
            if (size_of(above) < least) least = size_of(above);
        }
        if (top == last) {
            now.bottom--;
            continue;
        }
        if (now.rotations + last - top > ROOM || now.sweeps == TURNS) {
            now.full = true;
            break;
        }
#if defined(TRIDIAGONAL)
        sweep(d, e, top, last, rotations + now.rotations * NUMBERS);
#else
        sweep(d, e, top, last, least <= floor, rotations + now.rotations * NUMBERS);
#endif
        if (VECTORS) sweeps[now.sweeps] = SWEEP(top, last - top);
        now.rotations += last - top;
        now.sweeps++;
    }
    return now;
}

// `bottoms` and `floors` carry a matrix over rounds; `orders` receives where each value
// came from, with a minus sign (less one) where it changed its own. `counts` receives
// the sweeps of this round. In the last round what still runs has failed.
extern "C" __global__ void __launch_bounds__(THREADS)
    values(REAL* diagonals, REAL* values_, REAL* rotations, i64* sweeps, int* counts,
           int* orders, int* states, int* bottoms, REAL* floors, const int* exponents,
           int* info, i64 round, i64 last_round, i64 batch) {
    REAL* d = (REAL*)shared_memory() + threadIdx.x;
    REAL* e = d + N * THREADS;
    int* order = (int*)((REAL*)shared_memory() + 2 * N * THREADS) + threadIdx.x;
    for (i64 first = (i64)blockIdx.x * THREADS; first < batch;
         first += (i64)gridDim.x * THREADS) {
        const i64 b = first + threadIdx.x;
        const int live = batch - first < THREADS ? (int)(batch - first) : THREADS;
        __syncthreads();
        for (int w = threadIdx.x; w < live * 2 * N; w += THREADS) {
            const int matrix = w / (2 * N), i = w - matrix * (2 * N);
            ((REAL*)shared_memory())[i * THREADS + matrix] = diagonals[first * 2 * N + w];
        }
        __syncthreads();
        if (b >= batch) continue;
        if (round > 0 && states[b] != RUNNING) {
            states[b] = FINISHED;
            continue;
        }
        REAL floor;
        int bottom = N - 1;
        if (round == 0) {
            REAL most = 0;
            for (int i = 0; i < N; i++) most = larger(most, larger(size_of(D(i)), size_of(E(i))));
            floor = most * epsilon() * (REAL)0.125;
            floors[b] = floor;
        } else {
            floor = floors[b];
            bottom = bottoms[b];
        }
        const Progress now = iterate(d, e, bottom, floor, rotations + b * ROOM * NUMBERS,
                                     sweeps + b * TURNS);
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
            int from = order[j * THREADS];
#if defined(BIDIAGONAL)
            if (E(from) < 0) from = -1 - from;
#endif
            if (VECTORS) orders[b * N + j] = from;
        }
    }
}
#endif

#if defined(ROTATE)
// Lines of WIDTH elements, HEIGHT of them per matrix; the first N of each are turned.
// A line is a row, or a column (ACROSS) of the array. TILE threads have a line each.
// SIGNED says that a changed sign of a value is made good here.
#define STEP (TILE + 1)

extern "C" __global__ void __launch_bounds__(TILE * GROUPS)
    rotate(REAL* q, const REAL* rotations, const i64* sweeps, const int* counts,
           const int* orders, const int* states, const int* info, i64 round, i64 batch) {
    const int thread = threadIdx.x % TILE, group = threadIdx.x / TILE;
    Element* tile = (Element*)shared_memory() + group * (WIDTH * STEP);
    const int start = blockIdx.y * TILE;
    const int lines = HEIGHT - start < TILE ? HEIGHT - start : TILE;
    for (i64 first = (i64)blockIdx.x * GROUPS; first < batch;
         first += (i64)gridDim.x * GROUPS) {
        const i64 b = first + group;
        const bool live = b < batch && states[b] != FINISHED;
        const int count = live ? counts[b] : 0;
        const bool is_done = live && states[b] == CONVERGED;
        REAL* words = q + (b < batch ? b : 0) * ((i64)HEIGHT * WIDTH * PARTS);
        if (live)
            for (int e = thread; e < (ACROSS ? TILE : lines) * WIDTH; e += TILE) {
                const int line = ACROSS ? e % TILE : e / WIDTH;
                const int j = ACROSS ? e / TILE : e - line * WIDTH;
                if (ACROSS && line >= lines) continue;
                const i64 at = ACROSS ? (i64)j * HEIGHT + start + line
                                      : (i64)(start + line) * WIDTH + j;
                tile[j * STEP + line] = element(words[at * PARTS], words[at * PARTS + PARTS - 1]);
            }
        group_sync<TILE * GROUPS <= 32 ? 32 : TILE>();
        if (live && thread < lines) {
            const REAL* numbers = rotations + b * ROOM * NUMBERS + OFFSET;
            for (int s = 0; s < count; s++) {
                const i64 which = sweeps[b * TURNS + s];
                const int length = (int)(which & 0xffffffff);
                Element* z = tile + (int)(which >> 32) * STEP + thread;
                Element x = z[0];
                _Pragma("unroll 4") for (int i = 0; i < length; i++) {
                    const REAL cosine = numbers[i * NUMBERS], sine = numbers[i * NUMBERS + 1];
                    const Element y = z[(i + 1) * STEP];
                    z[i * STEP] = x * cosine + y * sine;
                    x = y * cosine - x * sine;
                }
                z[length * STEP] = x;
                numbers += length * NUMBERS;
            }
        }
        group_sync<TILE * GROUPS <= 32 ? 32 : TILE>();
        if (live) {
            const bool failed = info[b] != 0;
            const int* order = orders + b * N;
            for (int e = thread; e < (ACROSS ? TILE : lines) * WIDTH; e += TILE) {
                const int line = ACROSS ? e % TILE : e / WIDTH;
                const int j = ACROSS ? e / TILE : e - line * WIDTH;
                if (ACROSS && line >= lines) continue;
                const i64 at = ACROSS ? (i64)j * HEIGHT + start + line
                                      : (i64)(start + line) * WIDTH + j;
                int from = is_done && j < N ? order[j] : j;
                const bool turned = from < 0;
                if (turned) from = -1 - from;
                Element x = tile[from * STEP + line];
                if (SIGNED && turned) x = x * (REAL)-1;
                if (is_done && failed) x = failed_element();
                words[at * PARTS] = real_part(x);
                if (PARTS == 2) words[at * PARTS + PARTS - 1] = imaginary_part(x);
            }
        }
        group_sync<TILE * GROUPS <= 32 ? 32 : TILE>();
    }
}
#endif
