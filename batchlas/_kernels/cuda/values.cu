// From a tridiagonal or bidiagonal matrix to its values: implicit QR. The chain of plane
// rotations is scalar work, so one thread does it for one matrix, and writes the
// rotations down for `rotate`.
//
// -DTRIDIAGONAL, -DBIDIAGONAL: N values, in descending order if DESCENDING; VECTORS says
//   whether rotations are written down

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

// The numbers of a block's matrices are interleaved: a thread's own bank.
#define D(i) d[(i) * LANES]
#define E(i) e[(i) * LANES]

__device__ inline bool is_small(REAL e, REAL above, REAL below, REAL floor) {
    return size_of(e) <= larger(floor, epsilon() * (size_of(above) + size_of(below)));
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

struct Progress {
    int bottom;  // values below are done
    int sweeps;  // of this round
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
__device__ inline int sweep(REAL* d, REAL* e, int top, int bottom, REAL floor, Pair* list) {
    const REAL last = D(bottom), edge = E(bottom - 1);
    const REAL half = (D(bottom - 1) - last) / (2 * edge);
    const REAL length = root(half * half + 1);
    // An enormous quotient is infinite here, and its inverse the zero that it means.
    REAL g = D(top) - last + edge / (half + (half < 0 ? -length : length));
    REAL s = 1, c = 1, p = 0, next = D(top), off = E(top), above = 0;
    int split = top;
    REAL *here_d = &D(top), *before_e = &E(top - 1);  // there is room before the first
    for (int i = top; i < bottom; i++) {
        const REAL here = next, f = s * off, b = c * off;
        next = here_d[LANES];
        off = before_e[2 * LANES];  // of the last row, whatever lies there is not used
        const Plane plane = plane_of(g, f);
        c = plane.c;
        s = plane.s;
        g = here - p;
        const REAL r = (next - g) * s + 2 * c * b;
        p = s * r;
        const REAL value = g + p;
        g = c * r - b;
        *here_d = value;
        *before_e = plane.r;
        if (is_small(plane.r, above, value, floor)) split = i;
        above = value;
        here_d += LANES;
        before_e += LANES;
        if (VECTORS) {
            *list = {c, s};
            list += LANES;
        }
    }
    const REAL value = next - p;
    *here_d = value;
    *before_e = g;
    E(top - 1) = 0;
    if (is_small(g, above, value, floor)) split = bottom;
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

__device__ inline void note(Pair*& list, const Plane& right, const Plane& left) {
    if (!VECTORS) return;
    list[0] = {right.c, right.s};
    list[1] = {left.c, left.s};
    list += 2 * LANES;
}

// One sweep of Golub, Kahan and Reinsch, or that of Demmel and Kahan without a shift,
// which is the one to take where the block is singular or nearly so. Returns the last
// row that a small element precedes.
__device__ inline int sweep(REAL* d, REAL* e, int top, int bottom, REAL floor, REAL& least,
                            Pair* list) {
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
            note(list, right, left);
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
            note(list, right, left);
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
    Progress now = {bottom, 0, false};
    int top = runs ? top_of(d, e, bottom, floor) : 0;
    i64 start = 0;
#if defined(BIDIAGONAL)
    REAL least = 0;  // the smallest diagonal element of the block, once it is known
    bool is_known = false;
#endif
    while (true) {
        while (runs && top == now.bottom) {
            now.bottom = top - 1;
            runs = now.bottom > 0;
            if (runs) top = top_of(d, e, now.bottom, floor);
#if defined(BIDIAGONAL)
            is_known = false;
#endif
        }
        const int count = runs ? now.bottom - top : 0, longest = block_max(count);
        if (longest == 0) break;
        if (start + longest > ROOM || now.sweeps == TURNS) {
            now.full = runs;
            break;
        }
        if (VECTORS) sweeps[now.sweeps * LANES] = SWEEP(start, top, count);
        if (runs) {
            const int last = now.bottom;
#if defined(TRIDIAGONAL)
            const int split = sweep(d, e, top, last, floor, rotations + start * LANES);
#else
            if (!is_known) {
                least = infinity();
                for (int i = top; i <= last; i++)
                    if (size_of(D(i)) < least) least = size_of(D(i));
                is_known = true;
            }
            const int split =
                sweep(d, e, top, last, floor, least, rotations + start * 2 * LANES);
#endif
            if (split > top) {
                E(split - 1) = 0;
                if (split < last) top = split;
                else now.bottom--;
            }
        }
        start += longest;
        now.sweeps++;
    }
    return now;
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
            REAL most = 0;
            for (int i = 0; i < N; i++) most = larger(most, larger(size_of(D(i)), size_of(E(i))));
            floor = most * epsilon() * (REAL)0.125;
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
