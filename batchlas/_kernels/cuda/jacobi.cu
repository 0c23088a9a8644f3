// Jacobi rotations, one thread per matrix, in registers, staged through shared memory.
// Every matrix is first brought near 1 by a power of two, and decides for itself when it
// has converged, so that a result does not depend on the neighbours.
//
// -DSYEV: order N, UPPER (which triangle is read), VECTORS
// -DGESVD: ROWS >= COLUMNS after conjugate transposition if FLIP; U' gets KEPT columns
//   (0: values alone). A = U' S V'^H, or (U' S V'^H)^H with FLIP.

#define SWEEPS 40

// Move the block's matrices of `words` words between device memory and its slots.
template <int WORDS>
__device__ inline void bring(REAL* tile, const REAL* source, int live) {
    _Pragma("unroll 8") for (int w = threadIdx.x; w < live * WORDS; w += THREADS)
        copy_word(tile + w + w / WORDS * (STRIDE - WORDS), source + w);
    wait_for_words();
    __syncthreads();
}

template <int WORDS>
__device__ inline void take(const REAL* tile, REAL* target, int live) {
    __syncthreads();
    _Pragma("unroll 8") for (int w = threadIdx.x; w < live * WORDS; w += THREADS)
        target[w] = tile[w + w / WORDS * (STRIDE - WORDS)];
    __syncthreads();
}

__device__ inline Element get(const REAL* slot, int e) {
    return element(slot[e * PARTS], slot[e * PARTS + PARTS - 1]);
}

__device__ inline void put(REAL* slot, int e, Element x) {
    slot[e * PARTS] = real_part(x);
    if (PARTS == 2) slot[e * PARTS + PARTS - 1] = imaginary_part(x);
}

#if defined(SYEV)
__device__ inline Element at(const Element (&a)[N][N], int i, int j) {
    return i > j ? a[i][j] : conjugate(a[j][i]);
}

__device__ inline void set(Element (&a)[N][N], int i, int j, Element x) {
    if (i > j) a[i][j] = x;
    else a[j][i] = conjugate(x);
}

// The largest square off the diagonal.
__device__ inline REAL largest_beside(const Element (&a)[N][N]) {
    REAL most = 0;
    _Pragma("unroll") for (int i = 1; i < N; i++)
        _Pragma("unroll") for (int j = 0; j < i; j++) most = larger(most, square(a[i][j]));
    return most;
}

// Diagonalise the lower triangle in place; return whether that converged: what is left
// beside the diagonal is below rounding.
__device__ inline bool diagonalise(Element (&a)[N][N], REAL (&d)[N], Element (&v)[N][N]) {
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        if (largest_beside(a) <= epsilon() * epsilon() / 16) return true;
        _Pragma("unroll") for (int p = 0; p < N - 1; p++)
            _Pragma("unroll") for (int q = p + 1; q < N; q++) {
            const Element g = conjugate(a[q][p]);
            const REAL size2 = square(g);
            if (size2 > least_square()) {
                const Rotation r = rotation_of(d[q] - d[p], g, size2);
                d[p] -= r.shift;
                d[q] += r.shift;
                a[q][p] = zero();
                _Pragma("unroll") for (int k = 0; k < N; k++) {
                    if (k == p || k == q) continue;
                    Element x = at(a, k, p), y = at(a, k, q);
                    turn(r, x, y);
                    set(a, k, p, x);
                    set(a, k, q, y);
                }
                if (VECTORS)
                    _Pragma("unroll") for (int k = 0; k < N; k++) turn(r, v[k][p], v[k][q]);
            }
        }
    }
    return false;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    syev(const REAL* a, REAL* w, REAL* v, int* info, i64 batch) {
    REAL* tile = (REAL*)shared_memory();
    REAL* mine = tile + threadIdx.x * STRIDE;
    for (i64 first = (i64)blockIdx.x * THREADS; first < batch;
         first += (i64)gridDim.x * THREADS) {
        const int live = batch - first < THREADS ? (int)(batch - first) : THREADS;
        bring<N * N * PARTS>(tile, a + first * (N * N * PARTS), live);
        Element m[N][N], vectors[N][N];
        REAL d[N], most = 0;
        int bad = 0;
        _Pragma("unroll") for (int i = 0; i < N; i++)
            _Pragma("unroll") for (int j = 0; j <= i; j++) {
            const Element x = UPPER ? conjugate(get(mine, j * N + i)) : get(mine, i * N + j);
            m[i][j] = i == j ? element(real_part(x), (REAL)0) : x;
            if (!bad && !is_finite_element(m[i][j])) bad = i + 1;
            most = larger(most, largest_part(m[i][j]));
        }
        const int e = scale_exponent(bad ? (REAL)0 : most);
        const REAL down = power(-e), up = power(e);
        _Pragma("unroll") for (int i = 0; i < N; i++) {
            _Pragma("unroll") for (int j = 0; j < i; j++)
                m[i][j] = bad ? zero() : m[i][j] * down;
            d[i] = bad ? (REAL)0 : real_part(m[i][i]) * down;
            _Pragma("unroll") for (int j = 0; j < N; j++)
                vectors[i][j] = i == j ? one() : zero();
        }
        // Matrices past the end of the batch hold whatever the slot held.
        if (threadIdx.x < live && !bad && !diagonalise(m, d, vectors)) bad = N;
        int rank[N];
        _Pragma("unroll") for (int j = 0; j < N; j++) {
            rank[j] = 0;
            _Pragma("unroll") for (int i = 0; i < N; i++)
                rank[j] += d[i] < d[j] || (d[i] == d[j] && i < j);
        }
        if (VECTORS) {
            _Pragma("unroll") for (int j = 0; j < N; j++)
                _Pragma("unroll") for (int i = 0; i < N; i++)
                put(mine, i * N + rank[j], bad ? failed_element() : vectors[i][j]);
            take<N * N * PARTS>(tile, v + first * (N * N * PARTS), live);
        }
        _Pragma("unroll") for (int j = 0; j < N; j++)
            mine[rank[j]] = bad ? not_a_number() : d[j] * up;
        if (threadIdx.x < live) info[first + threadIdx.x] = bad;
        take<N>(tile, w + first * N, live);
    }
}
#endif

#if defined(GESVD)
#define LINE(i, j) (FLIP ? (j) * ROWS + (i) : (i) * KEPT + (j))

// Square of a column's norm below which it counts as zero: far below rounding, and such
// that products with the tolerance do not underflow.
__device__ inline REAL least_column() { return EITHER(1e-24f, 1e-200); }

// One-sided: make the columns of `g` orthogonal, and `v` the product of the rotations.
__device__ inline bool orthogonalise(Element (&g)[ROWS][COLUMNS],
                                     Element (&v)[COLUMNS][COLUMNS]) {
    const REAL tolerance = ROWS * epsilon() * ROWS * epsilon();
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool rotated = false;
        _Pragma("unroll") for (int p = 0; p < COLUMNS - 1; p++)
            _Pragma("unroll") for (int q = p + 1; q < COLUMNS; q++) {
            REAL alpha = 0, beta = 0;
            Element gamma = zero();
            _Pragma("unroll") for (int i = 0; i < ROWS; i++) {
                alpha += square(g[i][p]);
                beta += square(g[i][q]);
                gamma = gamma + conjugate(g[i][p]) * g[i][q];
            }
            if (alpha < least_column() || beta < least_column()) continue;
            const REAL over = 1 / larger(alpha, beta);
            alpha *= over;
            beta *= over;
            gamma = gamma * over;
            const REAL size2 = square(gamma);
            if (size2 > tolerance * alpha * beta) {
                rotated = true;
                const Rotation r = rotation_of(beta - alpha, gamma, size2);
                _Pragma("unroll") for (int i = 0; i < ROWS; i++) turn(r, g[i][p], g[i][q]);
                if (KEPT)
                    _Pragma("unroll") for (int i = 0; i < COLUMNS; i++) turn(r, v[i][p], v[i][q]);
            }
        }
        if (!rotated) return true;
    }
    return false;
}

#if KEPT
// Fill the columns of a slot that are not `known` (a mask) with orthonormal ones: the
// unit vector that lies least in the known ones, made orthogonal to them twice.
__device__ inline void complete(REAL* slot, unsigned known) {
    for (int j = 0; j < KEPT; j++) {
        if (known >> j & 1) continue;
        int unit = 0;
        REAL least = infinity();
        for (int i = 0; i < ROWS; i++) {
            REAL inside = 0;
            for (int l = 0; l < KEPT; l++)
                if (known >> l & 1) inside += square(get(slot, LINE(i, l)));
            if (inside < least) least = inside, unit = i;
        }
        for (int i = 0; i < ROWS; i++) put(slot, LINE(i, j), i == unit ? one() : zero());
        for (int pass = 0; pass < 2; pass++) {
            for (int l = 0; l < KEPT; l++) {
                if (!(known >> l & 1)) continue;
                Element product = zero();
                for (int i = 0; i < ROWS; i++)
                    product = product + conjugate(get(slot, LINE(i, l))) * get(slot, LINE(i, j));
                for (int i = 0; i < ROWS; i++)
                    put(slot, LINE(i, j),
                        get(slot, LINE(i, j)) - get(slot, LINE(i, l)) * product);
            }
            REAL norm2 = 0;
            for (int i = 0; i < ROWS; i++) norm2 += square(get(slot, LINE(i, j)));
            for (int i = 0; i < ROWS; i++)
                put(slot, LINE(i, j), get(slot, LINE(i, j)) * (1 / root(norm2)));
        }
        known |= 1u << j;
    }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    gesvd(const REAL* a, REAL* u, REAL* s, REAL* vh, int* info, i64 batch) {
    REAL* tile = (REAL*)shared_memory();
    REAL* mine = tile + threadIdx.x * STRIDE;
    const int words = ROWS * COLUMNS * PARTS;
    for (i64 first = (i64)blockIdx.x * THREADS; first < batch;
         first += (i64)gridDim.x * THREADS) {
        const int live = batch - first < THREADS ? (int)(batch - first) : THREADS;
        bring<words>(tile, a + first * words, live);
        Element g[ROWS][COLUMNS], v[COLUMNS][COLUMNS];
        REAL most = 0;
        int bad = 0;
        _Pragma("unroll") for (int i = 0; i < ROWS; i++)
            _Pragma("unroll") for (int j = 0; j < COLUMNS; j++) {
            g[i][j] = FLIP ? conjugate(get(mine, j * ROWS + i)) : get(mine, i * COLUMNS + j);
            const int order = (i > j ? i : j) + 1;
            if (!is_finite_element(g[i][j]) && (!bad || order < bad)) bad = order;
            most = larger(most, largest_part(g[i][j]));
        }
        const int e = scale_exponent(bad ? (REAL)0 : most);
        const REAL down = power(-e), up = power(e);
        _Pragma("unroll") for (int j = 0; j < COLUMNS; j++) {
            _Pragma("unroll") for (int i = 0; i < ROWS; i++)
                g[i][j] = bad ? zero() : g[i][j] * down;
            _Pragma("unroll") for (int i = 0; i < COLUMNS; i++)
                v[i][j] = i == j ? one() : zero();
        }
        if (threadIdx.x < live && !bad && !orthogonalise(g, v)) bad = COLUMNS;
        REAL d[COLUMNS], inverse[COLUMNS];
        unsigned small = 0;
        _Pragma("unroll") for (int j = 0; j < COLUMNS; j++) {
            REAL norm2 = 0, lifted2 = 0;
            const REAL lift = EITHER(1.2676506e30f, 1e250);
            _Pragma("unroll") for (int i = 0; i < ROWS; i++) norm2 += square(g[i][j]);
            d[j] = root(norm2);
            inverse[j] = 1 / d[j];
            if (norm2 < least_column()) {
                _Pragma("unroll") for (int i = 0; i < ROWS; i++)
                    lifted2 += square(g[i][j] * lift);
                d[j] = root(lifted2) / lift;
                inverse[j] = 0;
                small |= 1u << j;
            }
        }
        int rank[COLUMNS];
        _Pragma("unroll") for (int j = 0; j < COLUMNS; j++) {
            rank[j] = 0;
            _Pragma("unroll") for (int i = 0; i < COLUMNS; i++)
                rank[j] += d[i] > d[j] || (d[i] == d[j] && i < j);
        }
#if KEPT
        unsigned known = 0;
        _Pragma("unroll") for (int j = 0; j < COLUMNS; j++) {
            _Pragma("unroll") for (int i = 0; i < ROWS; i++)
                put(mine, LINE(i, rank[j]), g[i][j] * inverse[j]);
            if (!(small >> j & 1)) known |= 1u << rank[j];
        }
        if (threadIdx.x < live && !bad && known != (1u << KEPT) - 1) complete(mine, known);
        if (bad || (FLIP && PARTS == 2))
            for (int k = 0; k < ROWS * KEPT; k++)
                put(mine, k, bad ? failed_element() : conjugate(get(mine, k)));
        take<ROWS * KEPT * PARTS>(tile, (FLIP ? vh : u) + first * (ROWS * KEPT * PARTS),
                                  live);
        _Pragma("unroll") for (int j = 0; j < COLUMNS; j++)
            _Pragma("unroll") for (int i = 0; i < COLUMNS; i++) {
            const Element x = FLIP ? v[i][j] : conjugate(v[i][j]);
            put(mine, FLIP ? i * COLUMNS + rank[j] : rank[j] * COLUMNS + i,
                bad ? failed_element() : x);
        }
        take<COLUMNS * COLUMNS * PARTS>(
            tile, (FLIP ? u : vh) + first * (COLUMNS * COLUMNS * PARTS), live);
#endif
        _Pragma("unroll") for (int j = 0; j < COLUMNS; j++)
            mine[rank[j]] = bad ? not_a_number() : d[j] * up;
        if (threadIdx.x < live) info[first + threadIdx.x] = bad;
        take<COLUMNS>(tile, s + first * COLUMNS, live);
    }
}
#endif
