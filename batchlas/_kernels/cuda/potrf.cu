// Cholesky factorisations, one kernel per family. N is the order, UPPER says which
// triangle is read and written. A pivot that is not a positive number makes info its
// order and the factor NaN; a NaN or infinity in the read triangle ends up in the
// pivot of its row, so this is also how they are found.
//
// tiny   one thread per matrix, in registers, staged through shared memory
// rows   GROUP threads per matrix, each with one row in registers
// panel  one block per matrix in shared memory, in panels of WIDTH columns
// blocked  panels of WIDTH columns in device memory, a thread per row; the products
//        between them are the library's

// Where the element (i, j), i >= j, of the lower factor lies in a C-order matrix. The
// upper triangle is taken as the lower one of A^T = conj(A) = conj(L) L^T, so that L^T
// lies where R with A = R^H R belongs, and nothing is conjugated.
__device__ inline int place(int i, int j) { return UPPER ? j * N + i : i * N + j; }

#if defined(TINY)
#define WORDS (N * N * PARTS)
#define STRIDE (WORDS | 1)

extern "C" __global__ void __launch_bounds__(THREADS)
    potrf(const REAL* a, REAL* factor, int* info, i64 batch) {
    REAL* tile = (REAL*)shared_memory();
    REAL* mine = tile + threadIdx.x * STRIDE;
    for (i64 first = (i64)blockIdx.x * THREADS; first < batch;
         first += (i64)gridDim.x * THREADS) {
        const int live = batch - first < THREADS ? (int)(batch - first) : THREADS;
        const REAL* source = a + first * WORDS;
        _Pragma("unroll 8") for (int w = threadIdx.x; w < live * WORDS; w += THREADS)
            copy_word(tile + w + w / WORDS * (STRIDE - WORDS), source + w);
        wait_for_words();
        __syncthreads();
        if (threadIdx.x < live) {
            Element l[N][N];
            _Pragma("unroll") for (int i = 0; i < N; i++)
                _Pragma("unroll") for (int j = 0; j <= i; j++) {
                const REAL* word = mine + place(i, j) * PARTS;
                l[i][j] = element(word[0], i == j ? (REAL)0 : word[PARTS - 1]);
            }
            int bad = 0;
            _Pragma("unroll") for (int j = 0; j < N; j++) {
                const REAL pivot = real_part(l[j][j]);
                if (!bad && !(pivot > 0 && pivot < infinity())) bad = j + 1;
                const REAL inverse = inverse_root(pivot);
                l[j][j] = element(root(pivot), (REAL)0);
                _Pragma("unroll") for (int i = j + 1; i < N; i++)
                    l[i][j] = l[i][j] * inverse;
                _Pragma("unroll") for (int k = j + 1; k < N; k++)
                    _Pragma("unroll") for (int i = k; i < N; i++)
                    l[i][k] = l[i][k] - l[i][j] * conjugate(l[k][j]);
            }
            _Pragma("unroll") for (int i = 0; i < N; i++)
                _Pragma("unroll") for (int j = 0; j < N; j++) {
                Element x = j <= i ? l[i][j] : zero();
                if (bad) x = failed_element();
                REAL* word = mine + place(i, j) * PARTS;
                word[0] = real_part(x);
                if (PARTS == 2) word[PARTS - 1] = imaginary_part(x);
            }
            info[first + threadIdx.x] = bad;
        }
        __syncthreads();
        REAL* target = factor + first * WORDS;
        _Pragma("unroll 8") for (int w = threadIdx.x; w < live * WORDS; w += THREADS)
            target[w] = tile[w + w / WORDS * (STRIDE - WORDS)];
        __syncthreads();
    }
}
#else

#if defined(PANEL)
#define AT(i, j) ((i) * ((i) + 1) / 2 + (j))  // the lower triangle by rows, packed
#else
#define AT(i, j) ((i) * (N | 1) + (j))
#endif

// Bring the read triangle of a matrix into `tile` as a lower one, or the result back.
template <int SIZE>
__device__ inline void load_lower(Element* tile, const REAL* a, int thread) {
    REAL* words = (REAL*)tile;
    _Pragma("unroll 4") for (int w = thread; w < N * N * PARTS; w += SIZE) {
        const int e = w / PARTS, y = e / N, x = e - y * N;
        const int i = UPPER ? x : y, j = UPPER ? y : x;
        if (j <= i) copy_word(words + AT(i, j) * PARTS + (w - e * PARTS), a + w);
    }
}

template <int SIZE>
__device__ inline void store_lower(const Element* tile, REAL* factor, int bad, int thread) {
    const REAL* words = (const REAL*)tile;
    _Pragma("unroll 4") for (int w = thread; w < N * N * PARTS; w += SIZE) {
        const int e = w / PARTS, y = e / N, x = e - y * N;
        const int i = UPPER ? x : y, j = UPPER ? y : x;
        const REAL kept = j <= i ? words[AT(i, j) * PARTS + (w - e * PARTS)] : (REAL)0;
        factor[w] = bad ? not_a_number() : kept;
    }
}

// A column of one matrix: every thread has one row of `width` columns, and publishes
// what it has of each column before that is divided by the pivot's root. Two buffers
// take turns, so that one barrier per column is enough.
template <int COLUMNS, int SIZE>
__device__ inline void factor_columns(Element (&row)[COLUMNS], Element* columns, int steps,
                                      int first, int thread, int& bad) {
    _Pragma("unroll") for (int j = 0; j < COLUMNS; j++) {
        Element* column = columns + (j % 2) * steps;
        column[thread] = row[j];
        group_sync<SIZE>();
        const REAL pivot = real_part(column[first + j]);
        if (!bad && !(pivot > 0 && pivot < infinity())) bad = first + j + 1;
        const REAL inverse = inverse_root(pivot);
        row[j] = row[j] * inverse;
        const Element over = row[j] * inverse;
        if (thread == first + j) row[j] = element(root(pivot), (REAL)0);
        _Pragma("unroll") for (int k = j + 1; k < COLUMNS; k++)
            row[k] = row[k] - over * conjugate(column[first + k]);
    }
}
#endif

#if defined(ROWS)
extern "C" __global__ void __launch_bounds__(GROUP * GROUPS)
    potrf(const REAL* a, REAL* factor, int* info, i64 batch) {
    const int thread = threadIdx.x % GROUP, group = threadIdx.x / GROUP;
    Element* columns = (Element*)shared_memory() + group * 2 * GROUP;
    Element* tile = (Element*)shared_memory() + GROUPS * 2 * GROUP + group * N * (N | 1);
    for (i64 first = (i64)blockIdx.x * GROUPS; first < batch;
         first += (i64)gridDim.x * GROUPS) {
        const i64 b = first + group;
        const bool live = b < batch;
        if (live) load_lower<GROUP>(tile, a + b * (N * N * PARTS), thread);
        wait_for_words();
        group_sync<GROUP>();
        Element row[N];
        const int i = thread < N ? thread : N - 1;
        _Pragma("unroll") for (int j = 0; j < N; j++) {
            row[j] = live && j <= thread ? tile[AT(i, j)] : zero();
        }
        int bad = 0;
        factor_columns<N, GROUP>(row, columns, GROUP, 0, thread, bad);
        if (live && thread < N)
            _Pragma("unroll") for (int j = 0; j < N; j++)
                if (j <= thread) tile[AT(i, j)] = row[j];
        group_sync<GROUP>();
        if (live) store_lower<GROUP>(tile, factor + b * (N * N * PARTS), bad, thread);
        if (live && thread == 0) info[b] = bad;
        group_sync<GROUP>();
    }
}
#endif

#if defined(PANEL)
// PADDED is N rounded up to whole panels; the padding is an identity.
__device__ inline void update_tile(Element* tile, const Element* panel, int i0, int j0) {
    Element sum[4][4];
    _Pragma("unroll") for (int i = 0; i < 4; i++)
        _Pragma("unroll") for (int j = 0; j < 4; j++) sum[i][j] = zero();
    _Pragma("unroll 4") for (int k = 0; k < WIDTH; k++) {
        Element left[4], right[4];
        _Pragma("unroll") for (int i = 0; i < 4; i++) {
            left[i] = panel[k * PADDED + i0 + i];
            right[i] = conjugate(panel[k * PADDED + j0 + i]);
        }
        _Pragma("unroll") for (int i = 0; i < 4; i++)
            _Pragma("unroll") for (int j = 0; j < 4; j++)
            sum[i][j] = sum[i][j] + left[i] * right[j];
    }
    _Pragma("unroll") for (int i = 0; i < 4; i++)
        _Pragma("unroll") for (int j = 0; j < 4; j++)
        if (j0 + j <= i0 + i) {
        Element& x = tile[AT(i0 + i, j0 + j)];
        x = x - sum[i][j];
    }
}

extern "C" __global__ void __launch_bounds__(GROUP)
    potrf(const REAL* a, REAL* factor, int* info, i64 batch) {
    Element* panel = (Element*)shared_memory();  // by columns
    Element* columns = panel + WIDTH * PADDED;
    Element* tile = columns + 2 * GROUP;
    const int thread = threadIdx.x;
    for (i64 b = blockIdx.x; b < batch; b += gridDim.x) {
        for (int e = thread; e < (PADDED - N) * PADDED; e += GROUP) {
            const int i = N + e / PADDED, j = e % PADDED;
            if (j <= i) tile[AT(i, j)] = i == j ? one() : zero();
        }
        load_lower<GROUP>(tile, a + b * (N * N * PARTS), thread);
        wait_for_words();
        __syncthreads();
        int bad = 0;
        for (int p = 0; p < PADDED; p += WIDTH) {
            Element row[WIDTH];
            const bool has_row = thread >= p && thread < PADDED;
            _Pragma("unroll") for (int j = 0; j < WIDTH; j++) {
                const bool is_lower = has_row && p + j <= thread;
                row[j] = is_lower ? tile[AT(thread, p + j)] : zero();
            }
            factor_columns<WIDTH, GROUP>(row, columns, GROUP, p, thread, bad);
            if (has_row)
                _Pragma("unroll") for (int j = 0; j < WIDTH; j++) {
                    if (p + j <= thread) tile[AT(thread, p + j)] = row[j];
                    panel[j * PADDED + thread] = row[j];
                }
            __syncthreads();
            // The rest less the panel's product with itself, in tiles of 4 x 4; those
            // of the lower triangle are counted row by row.
            const int edge = p + WIDTH, tiles = (PADDED - edge) / 4;
            for (int t = thread; t < tiles * (tiles + 1) / 2; t += GROUP) {
                int i = (int)((sqrtf(8.0f * t + 1.0f) - 1.0f) * 0.5f);
                while (i * (i + 1) / 2 > t) i--;
                while ((i + 1) * (i + 2) / 2 <= t) i++;
                const int j = t - i * (i + 1) / 2;
                update_tile(tile, panel, edge + 4 * i, edge + 4 * j);
            }
            __syncthreads();
        }
        store_lower<GROUP>(tile, factor + b * (N * N * PARTS), bad, thread);
        if (thread == 0) info[b] = bad;
        __syncthreads();
    }
}
#endif

#if defined(BLOCKED)
// The read triangle, the other one zero, and the diagonal real: a NaN that is not read
// would spread in the products.
extern "C" __global__ void copy_triangle(const REAL* a, REAL* factor, i64 batch) {
    for (i64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const i64 start = b * ((i64)N * N * PARTS);
        for (int w = blockIdx.y * blockDim.x + threadIdx.x; w < N * N * PARTS;
             w += gridDim.y * blockDim.x) {
            const int e = w / PARTS, i = e / N, j = e - i * N;
            const bool is_read = (UPPER ? j >= i : j <= i) && !(i == j && w != e * PARTS);
            factor[start + w] = is_read ? a[start + w] : (REAL)0;
        }
    }
}

// Factor the columns p .. p + WIDTH, from which the earlier ones have been taken away.
extern "C" __global__ void __launch_bounds__(GROUP)
    factor_panel(REAL* factor, int* info, i64 p, i64 batch) {
    Element* columns = (Element*)shared_memory();
    const int thread = threadIdx.x, i = (int)p + thread;
    for (i64 b = blockIdx.x; b < batch; b += gridDim.x) {
        REAL* matrix = factor + b * ((i64)N * N * PARTS);
        Element row[WIDTH];
        _Pragma("unroll") for (int j = 0; j < WIDTH; j++) {
            const int column = (int)p + j;
            row[j] = i == column ? one() : zero();  // past the end, an identity
            if (i < N && column <= i) {
                const REAL* word = matrix + (i64)place(i, column) * PARTS;
                row[j] = element(word[0], word[PARTS - 1]);
            }
        }
        int bad = 0;
        factor_columns<WIDTH, (GROUP > 32 ? GROUP : 33)>(row, columns, GROUP, 0, thread, bad);
        _Pragma("unroll") for (int j = 0; j < WIDTH; j++) {
            const int column = (int)p + j;
            if (i >= N || column >= N) continue;
            const Element x = column <= i ? row[j] : zero();  // the product wrote there
            REAL* word = matrix + (i64)place(i, column) * PARTS;
            word[0] = real_part(x);
            if (PARTS == 2) word[PARTS - 1] = imaginary_part(x);
        }
        if (thread == 0 && (p == 0 || info[b] == 0)) info[b] = bad ? (int)p + bad : 0;
        __syncthreads();
    }
}

extern "C" __global__ void spoil_failed(REAL* factor, const int* info, i64 batch) {
    for (i64 b = blockIdx.x; b < batch; b += gridDim.x)
        if (info[b])
            for (int w = threadIdx.x; w < N * N * PARTS; w += blockDim.x)
                factor[b * ((i64)N * N * PARTS) + w] = not_a_number();
}
#endif
