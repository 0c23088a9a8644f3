// From a tridiagonal or bidiagonal matrix to its values: implicit QR. The chain of plane
// rotations is scalar work, so one thread does it for one matrix, and writes the
// rotations down; `rotate` then applies them to the rows of the vectors, which do not
// depend on each other.
//
// Room for rotations is limited, so both kernels run for several rounds: a matrix stops
// when its room is full and goes on in the next round. `states` says where it is.
//
// -DTRIDIAGONAL, -DBIDIAGONAL: the values (N of them), a block's threads a matrix each,
//   ROOM rotations and TURNS sweeps per round; VECTORS says whether to write them down
// -DROTATE: apply the rotations at OFFSET of every NUMBERS to lines of N elements

enum State { RUNNING = 0, CONVERGED = 1, FINISHED = 2 };

// A sweep over the rows first .. first + count, as one number.
#define SWEEP(first, count) ((i64)(first) << 32 | (i64)(count))

struct __align__(2 * sizeof(REAL)) Pair {
    REAL c, s;
};

struct Plane {
    REAL c, s, r;
};

// c f + s g = r, -s f + c g = 0. What is so small that its squares lose digits is far
// below rounding, since matrices have been brought near 1: there, g is dropped.
__device__ inline Plane plane_of(REAL f, REAL g) {
    const REAL square = f * f + g * g;
    const bool is_tiny = square < least_square();
    const REAL inverse = quick_inverse_root(is_tiny ? (REAL)1 : square);
    return {is_tiny ? (REAL)1 : f * inverse, is_tiny ? (REAL)0 : g * inverse,
            is_tiny ? f : square * inverse};
}

#if defined(TRIDIAGONAL) || defined(BIDIAGONAL)
// The numbers of a block's matrices are interleaved: a thread's own bank.
#define LANES ((int)blockDim.x)
#define D(i) d[(i) * LANES]
#define E(i) e[(i) * LANES]

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
            order[at * LANES] = order[(at - 1) * LANES];
            at--;
        }
        D(at) = x;
        order[at * LANES] = j;
    }
}

// Writes rotations down, 16 bytes at a time in single precision too: every thread has a
// list of its own, so that each store costs a transaction per thread.
struct Writer {
    Pair* target;
    Pair held;
    bool holds;

    __device__ void add(REAL c, REAL s) {
        if (!VECTORS) return;
        if (sizeof(REAL) == 8) {
            *target++ = {c, s};
            return;
        }
        if (holds) {
            struct __align__(16) Pairs {
                Pair first, second;
            };
            *(Pairs*)target = {held, {c, s}};
            target += 2;
        }
        held = {c, s};
        holds = !holds;
    }

    __device__ void finish() {
        if (holds) *target = held;
    }
};

struct Progress {
    int bottom;     // values below are done
    i64 rotations;  // written down in this round
    int sweeps;
    bool full;
};

// The first row of the block that ends in `bottom`; the element before it is made zero.
__device__ inline int top_of(const REAL* d, REAL* e, int bottom, REAL floor) {
    int top = bottom;
    while (top > 0 && !is_small(E(top - 1), D(top - 1), D(top), floor)) top--;
    if (top > 0) E(top - 1) = 0;
    return top;
}

#if defined(TRIDIAGONAL)
#define NUMBERS 2

// One QR sweep over top .. bottom, shifted by the eigenvalue of the last 2 x 2 that is
// nearer to its last element. Returns the last row that a small element precedes.
__device__ inline int sweep(REAL* d, REAL* e, int top, int bottom, REAL floor,
                            Writer& writer) {
    const REAL last = D(bottom), edge = E(bottom - 1);
    const REAL half = (D(bottom - 1) - last) / (2 * edge);
    const REAL length = root(half * half + 1);
    // An enormous quotient is infinite here, and its inverse the zero that it means.
    REAL g = D(top) - last + edge / (half + (half < 0 ? -length : length));
    REAL s = 1, c = 1, p = 0, next = D(top), off = E(top), above = 0;
    int split = top;
    for (int i = top; i < bottom; i++) {
        const REAL here = next, f = s * off, b = c * off;
        next = D(i + 1);
        off = E(i + 1);  // of the last row, whatever lies there is not used
        const Plane plane = plane_of(g, f);
        c = plane.c;
        s = plane.s;
        g = here - p;
        const REAL r = (next - g) * s + 2 * c * b;
        p = s * r;
        const REAL value = g + p;
        g = c * r - b;
        D(i) = value;
        if (i > top) {
            E(i - 1) = plane.r;
            if (is_small(plane.r, above, value, floor)) split = i;
        }
        above = value;
        writer.add(c, s);
    }
    D(bottom) = next - p;
    E(bottom - 1) = g;
    if (is_small(g, above, next - p, floor)) split = bottom;
    return split;
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

__device__ inline void note(Writer& writer, const Plane& right, const Plane& left) {
    writer.add(right.c, right.s);
    writer.add(left.c, left.s);
}

// One sweep of Golub, Kahan and Reinsch, or that of Demmel and Kahan without a shift,
// which is the one to take where the block is singular or nearly so. Returns the last
// row that a small element precedes.
__device__ inline int sweep(REAL* d, REAL* e, int top, int bottom, REAL floor, REAL& least,
                            Writer& writer) {
    REAL shift = 0, above = 0, smallest = infinity();
    const REAL first = D(top);
    if (least > floor) {
        shift = smaller_value(D(bottom - 1), E(bottom - 1), D(bottom));
        const REAL ratio = shift / first;
        if (ratio * ratio < epsilon()) shift = 0;
    }
    int split = top;
    if (shift == 0) {
        REAL c = 1, c_old = 1, s_old = 0;
        for (int i = top; i < bottom; i++) {
            const Plane right = plane_of(D(i) * c, E(i));
            const Plane left = plane_of(c_old * right.r, D(i + 1) * right.s);
            D(i) = left.r;
            if (i > top) {
                E(i - 1) = s_old * right.r;
                if (is_small(s_old * right.r, above, left.r, floor)) split = i;
            }
            above = left.r;
            s_old = left.s;
            c = right.c;
            c_old = left.c;
            if (size_of(above) < smallest) smallest = size_of(above);
            note(writer, right, left);
        }
        const REAL h = D(bottom) * c;
        D(bottom) = h * c_old;
        E(bottom - 1) = h * s_old;
    } else {
        REAL f = (size_of(first) - shift) * ((first < 0 ? (REAL)-1 : (REAL)1) + shift / first);
        REAL g = E(top), here = first, off = E(top);
        for (int i = top; i < bottom; i++) {
            const REAL next = D(i + 1), after = E(i + 1);  // not used in the last row
            const Plane right = plane_of(f, g);
            f = right.c * here + right.s * off;
            off = right.c * off - right.s * here;
            const Plane left = plane_of(f, right.s * next);
            f = left.c * off + left.s * (right.c * next);
            here = left.c * (right.c * next) - left.s * off;
            D(i) = left.r;
            if (i > top) {
                E(i - 1) = right.r;
                if (is_small(right.r, above, left.r, floor)) split = i;
            }
            above = left.r;
            g = left.s * after;
            off = left.c * after;
            if (size_of(above) < smallest) smallest = size_of(above);
            note(writer, right, left);
        }
        D(bottom) = here;
        E(bottom - 1) = f;
    }
    if (size_of(D(bottom)) < smallest) smallest = size_of(D(bottom));
    if (is_small(E(bottom - 1), above, D(bottom), floor)) split = bottom;
    least = smallest;
    return split;
}
#endif

// Sweep until every off-diagonal element is small or the room is full.
__device__ inline Progress iterate(REAL* d, REAL* e, int bottom, REAL floor, Pair* rotations,
                                   i64* sweeps) {
    Progress now = {bottom, 0, 0, false};
    Writer writer = {rotations, {0, 0}, false};
    int top = top_of(d, e, bottom, floor);
#if defined(BIDIAGONAL)
    REAL least = 0;  // the smallest diagonal element of the block, once it is known
    bool is_known = false;
#endif
    while (true) {
        if (top == now.bottom) {
            now.bottom = top - 1;
            if (now.bottom <= 0) break;
            top = top_of(d, e, now.bottom, floor);
#if defined(BIDIAGONAL)
            is_known = false;
#endif
            continue;
        }
        const int last = now.bottom;
        if (now.rotations + last - top > ROOM || now.sweeps == TURNS) {
            now.full = true;
            break;
        }
#if defined(TRIDIAGONAL)
        const int split = sweep(d, e, top, last, floor, writer);
#else
        if (!is_known) {
            least = infinity();
            for (int i = top; i <= last; i++)
                if (size_of(D(i)) < least) least = size_of(D(i));
            is_known = true;
        }
        const int split = sweep(d, e, top, last, floor, least, writer);
#endif
        if (VECTORS) sweeps[now.sweeps] = SWEEP(top, last - top);
        now.rotations += last - top;
        now.sweeps++;
        if (split > top) {
            E(split - 1) = 0;
            if (split < last) top = split;
            else now.bottom--;
        }
    }
    writer.finish();
    return now;
}

// `bottoms` and `floors` carry a matrix over rounds; `orders` receives where each value
// came from, with a minus sign (less one) where it changed its own. `counts` receives
// the sweeps of this round. In the last round what still runs has failed.
extern "C" __global__ void __launch_bounds__(32)
    values(REAL* diagonals, REAL* values_, REAL* rotations, i64* sweeps, int* counts,
           int* orders, int* states, int* bottoms, REAL* floors, const int* exponents,
           int* info, i64 round, i64 last_round, i64 batch) {
    REAL* d = (REAL*)shared_memory() + threadIdx.x;
    REAL* e = d + N * LANES;
    int* order = (int*)((REAL*)shared_memory() + 2 * N * LANES) + threadIdx.x;
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
            ((REAL*)shared_memory())[i * LANES + matrix] = diagonals[first * 2 * N + w];
        }
        __syncthreads();
        if (!runs) continue;
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
        const Progress now = iterate(d, e, bottom, floor, (Pair*)(rotations + b * ROOM * NUMBERS),
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
            int from = order[j * LANES];
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
#define CHUNK (sizeof(Element) > 8 ? 4 : 8)

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
                int i = 0;
                // What does not wait for the chain is asked for first.
                for (; i + CHUNK <= length; i += CHUNK) {
                    Pair turn[CHUNK];
                    Element y[CHUNK];
                    _Pragma("unroll") for (int u = 0; u < CHUNK; u++) {
                        turn[u] = *(const Pair*)(numbers + (i + u) * NUMBERS);
                        y[u] = z[(i + u + 1) * STEP];
                    }
                    _Pragma("unroll") for (int u = 0; u < CHUNK; u++) {
                        const Element kept = x * turn[u].c + y[u] * turn[u].s;
                        x = y[u] * turn[u].c - x * turn[u].s;
                        y[u] = kept;
                    }
                    _Pragma("unroll") for (int u = 0; u < CHUNK; u++) z[(i + u) * STEP] = y[u];
                }
                for (; i < length; i++) {
                    const Pair turn = *(const Pair*)(numbers + i * NUMBERS);
                    const Element y = z[(i + 1) * STEP];
                    z[i * STEP] = x * turn.c + y * turn.s;
                    x = y * turn.c - x * turn.s;
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
