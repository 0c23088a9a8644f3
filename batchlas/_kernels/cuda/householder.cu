// Reduction by Householder reflectors: Hermitian to tridiagonal, general to bidiagonal.
//
// -DROWS_KERNEL  tridiagonalise for N <= 32: GROUP threads per matrix, a row of it and
//                of Q in the registers of each; BLOCKS on a multiprocessor
// -DTRIDIAGONAL  tridiagonalise for larger N: one block per matrix
// -DBIDIAGONAL   bidiagonalise for ROWS >= COLUMNS (of A^H with FLIP)
//
// A reflector is I - tau v v^H with v = (1, x * factor), where x is what the reduced
// matrix holds; H^H (alpha, x) = (beta, 0) with a real beta. Every x, as a line of LINE
// elements with zeros around it, tau and factor go to a workspace; where the matrix does
// not fit in shared memory it lies there too, after the lines (MATRIX elements in all). Every matrix is first brought near 1 by a power of two; one
// that is not finite is replaced by zeros and has its info set.

struct Reflector {
    Element tau, factor;
    REAL beta;
};

__device__ inline Reflector reflector_of(Element alpha, REAL tail2) {
    const REAL norm2 = square(alpha) + tail2;
    // Squares that underflow would give reflectors that are not unitary; what is dropped
    // is far below rounding.
    if (norm2 < least_square()) return {zero(), zero(), (REAL)0};
    if (tail2 == 0 && imaginary_part(alpha) == 0)
        return {zero(), zero(), real_part(alpha)};
    const REAL norm = root(norm2), beta = real_part(alpha) < 0 ? norm : -norm;
    const REAL inverse = 1 / beta;
    const Element gap = alpha - element(beta, (REAL)0);
    Reflector r;
    r.tau = element((beta - real_part(alpha)) * inverse, -imaginary_part(alpha) * inverse);
    r.factor = conjugate(gap) * (1 / square(gap));
    r.beta = beta;
    return r;
}

#if defined(ROWS_KERNEL)
#define LD (N | 1)

extern "C" __global__ void __launch_bounds__(GROUP * GROUPS, BLOCKS)
    tridiagonalise(const REAL* a, REAL* q, REAL* diagonals, int* exponents, int* info,
                   i64 batch) {
    const int thread = threadIdx.x % GROUP, group = threadIdx.x / GROUP;
    Element* columns = (Element*)shared_memory() + group * 3 * GROUP;
    Element* products = columns + 2 * GROUP;
    Element* tile = (Element*)shared_memory() + GROUPS * 3 * GROUP + group * N * LD;
    const int i = thread < N ? thread : N - 1;
    for (i64 first = (i64)blockIdx.x * GROUPS; first < batch;
         first += (i64)gridDim.x * GROUPS) {
        const i64 b = first + group;
        const bool live = b < batch;
        if (live)
            for (int w = thread; w < N * N * PARTS; w += GROUP) {
                const int e = w / PARTS, row = e / N;
                copy_word((REAL*)tile + (row * LD + e - row * N) * PARTS + (w - e * PARTS),
                          a + b * (N * N * PARTS) + w);
            }
        wait_for_words();
        group_sync<GROUP>();
        Element r[N], z[N];
        REAL most = 0, worst = 0;
        _Pragma("unroll") for (int j = 0; j < N; j++) {
            const bool own = UPPER ? j >= i : j <= i;
            Element x = own ? tile[i * LD + j] : conjugate(tile[j * LD + i]);
            if (j == i) x = element(real_part(x), (REAL)0);
            if (!live) x = zero();
            const int order = (i > j ? i : j) + 1;
            if (!is_finite_element(x)) worst = larger(worst, (REAL)(N + 1 - order));
            most = larger(most, largest_part(x));
            r[j] = x;
            z[j] = j == thread ? one() : zero();
        }
        worst = group_max<GROUP>(worst, 0);
        const int e = scale_exponent(group_max<GROUP>(worst > 0 ? (REAL)0 : most, 0));
        const REAL down = power(-e);
        _Pragma("unroll") for (int j = 0; j < N; j++)
            r[j] = worst > 0 ? zero() : r[j] * down;
        REAL d = 0, off = 0;
        _Pragma("unroll") for (int k = 0; k < N - 1; k++) {
            Element* column = columns + k % 2 * GROUP;
            const Element mine = thread > k && thread < N ? r[k] : zero();
            if (thread == k) d = real_part(r[k]);
            column[thread] = mine;
            group_sync<GROUP>();
            REAL tail2 = 0;
            Element sum = zero(), turned = zero();
            _Pragma("unroll") for (int j = k + 2; j < N; j++) {
                const Element x = column[j];
                tail2 += square(x);
                sum = sum + r[j] * x;
                if (VECTORS) turned = turned + z[j] * x;
            }
            const Reflector h = reflector_of(column[k + 1], tail2);
            if (thread == k) off = h.beta;
            const Element v = thread == k + 1 ? one() : mine * h.factor;
            const Element p = thread > k && thread < N ? sum * h.factor + r[k + 1] : zero();
            products[thread] = p;
            group_sync<GROUP>();
            Element product = zero();
            _Pragma("unroll") for (int j = k + 2; j < N; j++)
                product = product + conjugate(column[j]) * products[j];
            const REAL gamma = real_part(products[k + 1]) +
                               real_part(conjugate(h.factor) * product);
            const Element left = v * conjugate(h.tau);
            const Element right = h.tau * p - v * (square(h.tau) * gamma);
            const Element right_x = right * conjugate(h.factor);
            r[k + 1] = r[k + 1] - left * conjugate(products[k + 1]) - right;
            _Pragma("unroll") for (int j = k + 2; j < N; j++)
                r[j] = r[j] - left * conjugate(products[j]) - right_x * conjugate(column[j]);
            if (VECTORS) {
                const Element f = (z[k + 1] + turned * h.factor) * h.tau;
                const Element f_x = f * conjugate(h.factor);
                z[k + 1] = z[k + 1] - f;
                _Pragma("unroll") for (int j = k + 2; j < N; j++)
                    z[j] = z[j] - f_x * conjugate(column[j]);
            }
        }
        if (thread == N - 1) d = real_part(r[N - 1]);
        if (live && thread < N) {
            diagonals[b * (2 * N) + thread] = d;
            diagonals[b * (2 * N) + N + thread] = off;
        }
        if (live && thread == 0) {
            exponents[b] = e;
            info[b] = worst > 0 ? N + 1 - (int)worst : 0;
        }
        if (VECTORS) {
            group_sync<GROUP>();
            if (thread < N)
                _Pragma("unroll") for (int j = 0; j < N; j++) tile[thread * LD + j] = z[j];
            group_sync<GROUP>();
            if (live)
                for (int w = thread; w < N * N * PARTS; w += GROUP) {
                    const int e = w / PARTS, row = e / N;
                    q[b * (N * N * PARTS) + w] =
                        ((REAL*)tile)[(row * LD + e - row * N) * PARTS + (w - e * PARTS)];
                }
        }
        group_sync<GROUP>();
    }
}
#endif

#if defined(TRIDIAGONAL) || defined(BIDIAGONAL)
__device__ inline Element load_element(const REAL* a, i64 e) {
    return element(a[e * PARTS], a[e * PARTS + PARTS - 1]);
}

// The reduced matrix lies in shared memory, or in the workspace where it is too large.
#if IN_SHARED
#define LD (COLUMNS | 1)
#else
#define LD COLUMNS
#endif
#endif

#if defined(TRIDIAGONAL)
// SIDE threads run over the rows, SPLIT over parts of each; SIDE is a multiple of 32.
#define N COLUMNS

extern "C" __global__ void __launch_bounds__(SIDE * SPLIT)
    tridiagonalise(const REAL* a, REAL* reduced, REAL* reflectors, REAL* diagonals,
                   int* exponents, int* info, i64 batch) {
    const int GROUP = SIDE * SPLIT;
    Element* products = (Element*)shared_memory();
    Element* partial = products + N;
    REAL* tails = (REAL*)(partial + SPLIT * N);
    REAL* scratch = tails + SPLIT;
    Element* inside = (Element*)shared_memory() + N + SPLIT * N + (SPLIT + 33) / PARTS + 1;
    const int side = threadIdx.x % SIDE, split = threadIdx.x / SIDE;
    for (i64 b = blockIdx.x; b < batch; b += gridDim.x) {
        Element* lines = (Element*)reduced + b * MATRIX;
        Element* m = IN_SHARED ? inside : lines + N * LINE;
        const REAL* source = a + b * ((i64)N * N * PARTS);
        REAL most = 0, worst = 0;
        for (int e = threadIdx.x; e < N * N; e += GROUP) {
            const int i = e / N, j = e - i * N;
            if (UPPER ? j < i : j > i) continue;
            Element x = load_element(source, e);
            if (j == i) x = element(real_part(x), (REAL)0);
            const int order = (i > j ? i : j) + 1;
            if (!is_finite_element(x)) worst = larger(worst, (REAL)(N + 1 - order));
            most = larger(most, largest_part(x));
            m[i * LD + j] = x;
            m[j * LD + i] = conjugate(x);
        }
        worst = group_max<SIDE * SPLIT>(worst, scratch);
        const int e = scale_exponent(
            group_max<SIDE * SPLIT>(worst > 0 ? (REAL)0 : most, scratch));
        const REAL down = power(-e);
        for (int e = threadIdx.x; e < N * N; e += GROUP) {
            Element& x = m[e / N * LD + e % N];
            x = worst > 0 ? zero() : x * down;
        }
        __syncthreads();
        for (int k = 0; k < N - 1; k++) {
            const Element* row_k = m + k * LD;  // of the column x, the conjugate
            for (int i = side; i < N; i += SIDE) {
                REAL tail2 = 0;
                Element sum = zero();
                if (i / 32 * 32 + 31 > k) {  // warps above have nothing left
                    _Pragma("unroll 4") for (int j = k + 2 + split; j < N; j += SPLIT) {
                        const Element x = conjugate(row_k[j]);
                        tail2 += square(x);
                        sum = sum + m[i * LD + j] * x;
                    }
                    partial[split * N + i] = sum;
                }
                if (i == N - 1) tails[split] = tail2;
            }
            __syncthreads();
            REAL tail2 = 0;
            for (int s = 0; s < SPLIT; s++) tail2 += tails[s];
            const Reflector h = reflector_of(conjugate(row_k[k + 1]), tail2);
            REAL term = 0;
            if (split == 0)
                for (int i = side; i < N; i += SIDE) {
                    Element p = zero();
                    if (i > k) {
                        for (int s = 0; s < SPLIT; s++) p = p + partial[s * N + i];
                        p = p * h.factor + m[i * LD + k + 1];
                        const Element v =
                            i == k + 1 ? one() : conjugate(row_k[i]) * h.factor;
                        term += real_part(conjugate(v) * p);
                    }
                    products[i] = p;
                }
            const REAL gamma = group_sum<SIDE * SPLIT>(term, scratch);
            const REAL bend = square(h.tau) * gamma;
            for (int i = side; i < N; i += SIDE) {
                if (i <= k) continue;
                const Element v = i == k + 1 ? one() : conjugate(row_k[i]) * h.factor;
                const Element left = v * conjugate(h.tau);
                const Element right = h.tau * products[i] - v * bend;
                const Element right_x = right * conjugate(h.factor);
                if (split == 0)
                    m[i * LD + k + 1] =
                        m[i * LD + k + 1] - left * conjugate(products[k + 1]) - right;
                _Pragma("unroll 4") for (int j = k + 2 + split; j < N; j += SPLIT)
                    m[i * LD + j] = m[i * LD + j] - left * conjugate(products[j]) -
                                    right_x * row_k[j];
            }
            if (threadIdx.x == 0) {
                diagonals[b * (2 * N) + k] = real_part(m[k * LD + k]);
                diagonals[b * (2 * N) + N + k] = h.beta;
                Element* both = (Element*)reflectors + b * (2 * N) + 2 * k;
                both[0] = h.tau;
                both[1] = h.factor;
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            diagonals[b * (2 * N) + N - 1] = real_part(m[(N - 1) * LD + N - 1]);
            diagonals[b * (2 * N) + 2 * N - 1] = 0;
            exponents[b] = e;
            info[b] = worst > 0 ? N + 1 - (int)worst : 0;
        }
        if (VECTORS)
            for (int e = threadIdx.x; e < (N - 1) * LINE; e += GROUP) {
                const int k = e / LINE, i = e - k * LINE;
                lines[e] = i > k + 1 && i < N ? conjugate(m[k * LD + i]) : zero();
            }
        __syncthreads();
    }
}
#endif

#if defined(BIDIAGONAL)
extern "C" __global__ void __launch_bounds__(GROUP * GROUPS)
    bidiagonalise(const REAL* a, REAL* reduced, REAL* reflectors, REAL* diagonals,
                  int* exponents, int* info, i64 batch) {
    const int thread = threadIdx.x % GROUP, group = threadIdx.x / GROUP;
    REAL* scratch = (REAL*)shared_memory();
    Element* inside = (Element*)(scratch + 32) + group * (ROWS * LD);
    for (i64 first = (i64)blockIdx.x * GROUPS; first < batch;
         first += (i64)gridDim.x * GROUPS) {
        const bool live = first + group < batch;
        const i64 b = live ? first + group : batch - 1;  // its results are not kept
        Element* lines = (Element*)reduced + b * MATRIX;
        Element* across = lines + COLUMNS * LINE;
        Element* m = IN_SHARED ? inside : across + COLUMNS * LINE_ACROSS;
        const REAL* source = a + b * ((i64)ROWS * COLUMNS * PARTS);
        REAL most = 0, worst = 0;
        for (int e = thread; e < ROWS * COLUMNS; e += GROUP) {
            const int width = FLIP ? ROWS : COLUMNS, i = e / width, j = e - i * width;
            const Element x = load_element(source, e);
            const int order = (i > j ? i : j) + 1;
            if (!is_finite_element(x)) worst = larger(worst, (REAL)(ROWS + 1 - order));
            most = larger(most, largest_part(x));
            m[FLIP ? j * LD + i : i * LD + j] = FLIP ? conjugate(x) : x;
        }
        worst = group_max<GROUP>(worst, scratch);
        const int e = scale_exponent(group_max<GROUP>(worst > 0 ? (REAL)0 : most, scratch));
        const REAL down = power(-e);
        group_sync<GROUP>();
        for (int e = thread; e < ROWS * COLUMNS; e += GROUP) {
            Element& x = m[e / COLUMNS * LD + e % COLUMNS];
            x = worst > 0 ? zero() : x * down;
        }
        group_sync<GROUP>();
        Element* both = (Element*)reflectors + b * (4 * COLUMNS);
        REAL* d = diagonals + b * (2 * COLUMNS);
        for (int k = 0; k < COLUMNS; k++) {
            REAL tail2 = 0;
            for (int i = k + 1 + thread; i < ROWS; i += GROUP)
                tail2 += square(m[i * LD + k]);
            tail2 = group_sum<GROUP>(tail2, scratch);
            const Reflector h = reflector_of(m[k * LD + k], tail2);
            for (int j = k + 1 + thread; j < COLUMNS; j += GROUP) {
                Element sum = zero();
                _Pragma("unroll 4") for (int i = k + 1; i < ROWS; i++)
                    sum = sum + conjugate(m[i * LD + k]) * m[i * LD + j];
                const Element f =
                    conjugate(h.tau) * (m[k * LD + j] + conjugate(h.factor) * sum);
                const Element f_x = f * h.factor;
                m[k * LD + j] = m[k * LD + j] - f;
                _Pragma("unroll 4") for (int i = k + 1; i < ROWS; i++)
                    m[i * LD + j] = m[i * LD + j] - f_x * m[i * LD + k];
            }
            group_sync<GROUP>();
            Reflector g = {zero(), zero(), (REAL)0};
            if (k + 1 < COLUMNS) {
                tail2 = 0;
                for (int j = k + 2 + thread; j < COLUMNS; j += GROUP)
                    tail2 += square(m[k * LD + j]);
                tail2 = group_sum<GROUP>(tail2, scratch);
                g = reflector_of(conjugate(m[k * LD + k + 1]), tail2);
                for (int i = k + 1 + thread; i < ROWS; i += GROUP) {
                    Element sum = zero();
                    _Pragma("unroll 4") for (int j = k + 2; j < COLUMNS; j++)
                        sum = sum + m[i * LD + j] * conjugate(m[k * LD + j]);
                    const Element f = g.tau * (m[i * LD + k + 1] + g.factor * sum);
                    const Element f_x = f * conjugate(g.factor);
                    m[i * LD + k + 1] = m[i * LD + k + 1] - f;
                    _Pragma("unroll 4") for (int j = k + 2; j < COLUMNS; j++)
                        m[i * LD + j] = m[i * LD + j] - f_x * m[k * LD + j];
                }
                group_sync<GROUP>();
            }
            if (live && thread == 0) {
                d[k] = h.beta;
                d[COLUMNS + k] = g.beta;
                both[2 * k] = h.tau;
                both[2 * k + 1] = h.factor;
                both[2 * COLUMNS + 2 * k] = g.tau;
                both[2 * COLUMNS + 2 * k + 1] = g.factor;
            }
        }
        if (live && thread == 0) {
            exponents[b] = e;
            info[b] = worst > 0 ? ROWS + 1 - (int)worst : 0;
        }
        if (VECTORS && live) {
            for (int e = thread; e < COLUMNS * LINE; e += GROUP) {
                const int k = e / LINE, i = e - k * LINE;
                lines[e] = i > k && i < ROWS ? m[i * LD + k] : zero();
            }
            for (int e = thread; e < (COLUMNS - 1) * LINE_ACROSS; e += GROUP) {
                const int k = e / LINE_ACROSS, j = e - k * LINE_ACROSS;
                across[e] = j > k + 1 && j < COLUMNS ? conjugate(m[k * LD + j]) : zero();
            }
        }
        group_sync<GROUP>();
    }
}
#endif
