// The kernels around a cuSOLVER call: `prepare` copies a stack into the routine's
// working buffer and keeps non-finite matrices away from it, `arrange` puts values in
// order, `emit` turns what the routine left there into the results.
//
// Compiled once per dtype with -DREAL=float|double and -DPARTS=1|2 (2 is complex).
// Threads: x runs over the elements of a matrix, y over matrices. The blocks beside each
// other in the grid's y share a matrix, a piece of neighbouring elements each: what a
// piece reads across, it finds in its cache the next time. Batches are strided over in
// 64 bits, so neither a batch nor an array is ever too long.

typedef long long i64;

// Aligned as its parts are: a view may start at any multiple of REAL's size.
struct Element {
    REAL part[PARTS];
};

enum Part { FULL = 0, LOWER = 1, UPPER = 2 };
enum Phase { SCAN = 1, WRITE = 2 };

// A flag is 0 for a finite matrix. It counts down from here with the order of the first
// leading block that is not finite, so that atomicMax keeps the first one.
#define TOP 0x7fffffff

__device__ bool is_read(i64 part, i64 i, i64 j) {
    return part == FULL || (part == LOWER ? i >= j : i <= j);
}

// This block's piece of a matrix.
struct Piece {
    i64 first, stop;
};

__device__ Piece piece_of(i64 count) {
    const i64 length = (count + gridDim.y - 1) / gridDim.y, start = blockIdx.y * length;
    return {start + threadIdx.x, start + length < count ? start + length : count};
}

// 64-bit division costs several times as much, and few matrices need it.
__device__ i64 row_of(i64 e, i64 columns, i64 count) {
    return count <= TOP ? (i64)((unsigned)e / (unsigned)columns) : e / columns;
}

__device__ Element load(const char* a, i64 offset, bool is_real) {
    const REAL* source = (const REAL*)(a + offset);
    Element x;
    for (int c = 0; c < PARTS; c++) x.part[c] = c && is_real ? (REAL)0 : source[c];
    return x;
}

__device__ Element conjugate(Element x) {
    if (PARTS == 2) x.part[PARTS - 1] = -x.part[PARTS - 1];
    return x;
}

__device__ bool is_finite(Element x) {
    bool good = true;
    for (int c = 0; c < PARTS; c++) good &= x.part[c] - x.part[c] == (REAL)0;
    return good;
}

__device__ Element constant(REAL value, REAL imaginary) {
    Element x;
    for (int c = 0; c < PARTS; c++) x.part[c] = c ? imaginary : value;
    return x;
}

// Copy `a` (byte strides) to the packed stack `out`: all of it, or one triangle with
// either zeros or its mirror image in the other. A matrix with a non-finite entry in
// the part that is read is flagged, and written as the identity. A lone triangle, which
// is Cholesky's, keeps its finite leading block: that may hold an earlier bad minor.
//
// phases SCAN | WRITE in one launch needs gridDim.y == 1; a large matrix in a small
// batch takes two launches instead, with flags zeroed before the first. `pointers`,
// where given, receives the address of every matrix of `out`.
extern "C" __global__ void prepare(
    const char* a, i64 batch_stride, i64 row_stride, i64 column_stride, Element* out,
    int* flags, Element** pointers, i64 batch, i64 rows, i64 columns, i64 part,
    i64 mirror, i64 phases) {
    __shared__ int found_in_block[256];
    int& found = found_in_block[threadIdx.y];
    const i64 count = rows * columns;
    const Piece piece = piece_of(count);
    const bool is_first = blockIdx.y == 0 && threadIdx.x == 0;
    for (i64 base = (i64)blockIdx.x * blockDim.y; base < batch;
         base += (i64)gridDim.x * blockDim.y) {
        const i64 b = base + threadIdx.y;
        const bool live = b < batch;
        const char* matrix = a + b * batch_stride;
        if (phases & SCAN) {
            if (threadIdx.x == 0) found = 0;
            __syncthreads();
            int worst = 0;
            for (i64 e = piece.first; live && e < piece.stop; e += blockDim.x) {
                const i64 i = row_of(e, columns, count), j = e - i * columns;
                if (!is_read(part, i, j)) continue;
                const i64 offset = i * row_stride + j * column_stride;
                if (!is_finite(load(matrix, offset, part != FULL && i == j)))
                    worst = max(worst, (int)(TOP - max(i, j)));
            }
            if (worst) atomicMax(&found, worst);
            __syncthreads();
            if (live && threadIdx.x == 0) {
                if (phases & WRITE) flags[b] = found;
                else if (found) atomicMax(&flags[b], found);
            }
        }
        if (live && (phases & WRITE)) {
            const int flag = phases & SCAN ? found : flags[b];
            const i64 leading = part != FULL && !mirror ? TOP - flag : 0;
            Element* target = out + b * count;
            if (pointers && is_first) pointers[b] = target;
            for (i64 e = piece.first; e < piece.stop; e += blockDim.x) {
                const i64 i = row_of(e, columns, count), j = e - i * columns;
                const bool is_diagonal = part != FULL && i == j;
                Element x = constant(i == j ? (REAL)1 : (REAL)0, (REAL)0);
                if (flag == 0 || max(i, j) < leading) {
                    if (is_read(part, i, j))
                        x = load(matrix, i * row_stride + j * column_stride, is_diagonal);
                    else if (mirror)
                        x = conjugate(
                            load(matrix, j * row_stride + i * column_stride, false));
                }
                target[e] = x;
            }
        }
        __syncthreads();  // `found` is reset by the next turn
    }
}

// Copy each matrix's values in ascending order, equal ones as they come and NaN last, and
// write down which one is where.
extern "C" __global__ void arrange(
    const REAL* values, REAL* sorted, int* order, i64 batch, i64 n) {
    const Piece piece = piece_of(n);
    for (i64 b = (i64)blockIdx.x * blockDim.y + threadIdx.y; b < batch;
         b += (i64)gridDim.x * blockDim.y)
        for (i64 j = piece.first; j < piece.stop; j += blockDim.x) {
            const REAL mine = values[b * n + j];
            i64 rank = 0;
            for (i64 i = 0; i < n; i++) {
                const REAL other = values[b * n + i];
                const bool is_less = other < mine || (mine != mine && other == other);
                const bool is_more = other > mine || (other != other && mine == mine);
                rank += is_less || (!is_more && i < j);
            }
            sorted[b * n + rank] = mine;
            order[b * n + rank] = (int)j;
        }
}

// Write results: out[b, i, j] = in[b, i, j] by the strides of `in` (in elements), or its
// conjugate; zero outside `part`; NaN where the matrix failed. In place where in == out.
// `order`, where given, says which column of `in` is the j-th: order[b, j].
// `statuses` is the routine's own; `info`, where given, receives the merged status.
extern "C" __global__ void emit(
    const Element* in, i64 batch_stride, i64 row_stride, i64 column_stride, Element* out,
    const int* order, i64 batch, i64 rows, i64 columns, i64 part, i64 conjugated,
    const int* flags, const int* statuses, int* info) {
    const REAL nan = (REAL)__longlong_as_double(0x7ff8000000000000LL);
    const i64 count = rows * columns;
    const Piece piece = piece_of(count);
    for (i64 b = (i64)blockIdx.x * blockDim.y + threadIdx.y; b < batch;
         b += (i64)gridDim.x * blockDim.y) {
        int status = statuses[b];
        if (status < 0) status = TOP;  // a wrong argument; nobody may wait to raise here
        if (flags[b] && status == 0) status = TOP - flags[b] + 1;
        if (info && blockIdx.y == 0 && threadIdx.x == 0) info[b] = status;
        if (in == out && status == 0 && part == FULL) continue;
        for (i64 e = piece.first; e < piece.stop; e += blockDim.x) {
            const i64 i = row_of(e, columns, count), j = e - i * columns;
            Element x = constant((REAL)0, (REAL)0);
            if (status) x = constant(nan, nan);
            else if (is_read(part, i, j)) {
                const i64 from = order ? order[b * columns + j] : j;
                x = in[b * batch_stride + i * row_stride + from * column_stride];
                if (conjugated) x = conjugate(x);
            }
            out[b * count + e] = x;
        }
    }
}
