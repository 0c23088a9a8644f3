// The product of reflectors (see householder.cu), one thread per column of it.
//
// HEIGHT x WIDTH columns of the product of COUNT reflectors. The k-th begins in row
// k + SHIFT; its x is the k-th line of LINE elements, zero before and after it. With
// ADJOINT the conjugate transpose is written. A matrix has MATRIX elements of lines, of
// which ours begin at FIRST, and PERIOD of `reflectors`, from START on. TILE threads have
// a column each, which lies in shared memory. LINE is a multiple of CHUNK.
#define CHUNK 8

__device__ inline void load_chunk(Element (&x)[CHUNK], const Element* line) {
    _Pragma("unroll") for (int u = 0; u < CHUNK; u += PACK) {
        const Pack pack = *(const Pack*)(line + u);
        _Pragma("unroll") for (int w = 0; w < PACK; w++) x[u + w] = pack.x[w];
    }
}

// Apply one reflector to a column.
__device__ inline void reflect(Element* z, const Element* line, int top, Element tau,
                               Element factor) {
    const int start = (top + 1) / CHUNK * CHUNK;
    Element sums[4] = {zero(), zero(), zero(), zero()};
    _Pragma("unroll 2") for (int i = start; i < LINE; i += CHUNK) {
        Element x[CHUNK], y[CHUNK];
        load_chunk(x, line + i);
        _Pragma("unroll") for (int u = 0; u < CHUNK; u++) y[u] = z[(i + u) * TILE];
        _Pragma("unroll") for (int u = 0; u < CHUNK; u++)
            sums[u % 4] = sums[u % 4] + conjugate(x[u]) * y[u];
    }
    const Element sum = sums[0] + sums[1] + (sums[2] + sums[3]);
    const Element f = tau * (z[top * TILE] + conjugate(factor) * sum);
    const Element f_x = f * factor;
    z[top * TILE] = z[top * TILE] - f;
    _Pragma("unroll 2") for (int i = start; i < LINE; i += CHUNK) {
        Element x[CHUNK], y[CHUNK];
        load_chunk(x, line + i);
        _Pragma("unroll") for (int u = 0; u < CHUNK; u++) y[u] = z[(i + u) * TILE];
        _Pragma("unroll") for (int u = 0; u < CHUNK; u++)
            z[(i + u) * TILE] = y[u] - f_x * x[u];
    }
}

extern "C" __global__ void __launch_bounds__(TILE * GROUPS)
    accumulate(const REAL* lines, const REAL* reflectors, REAL* q, i64 batch) {
    const int thread = threadIdx.x % TILE, group = threadIdx.x / TILE;
    Element* held = (Element*)shared_memory() + group * (2 * LINE);  // two lines
    Element* z = (Element*)shared_memory() + GROUPS * 2 * LINE + group * (LINE * TILE) + thread;
    const int column = blockIdx.y * TILE + thread;
    const int last = column - SHIFT < COUNT - 1 ? column - SHIFT : COUNT - 1;
    const int end = blockIdx.y * TILE + TILE - 1 - SHIFT;
    const int deepest = end < COUNT - 1 ? end : COUNT - 1;
    for (i64 first = (i64)blockIdx.x * GROUPS; first < batch;
         first += (i64)gridDim.x * GROUPS) {
        const i64 b = first + group;
        const bool live = b < batch;
        const Element* mine = (const Element*)lines + (live ? b : 0) * MATRIX + FIRST;
        const Element* both = (const Element*)reflectors + (live ? b : 0) * PERIOD + START;
        __syncthreads();
        Element tau = zero(), factor = zero();
        if (deepest >= 0) {
            for (int w = thread * PACK; w < LINE; w += TILE * PACK)
                copy_16_bytes(held + deepest % 2 * LINE + w, mine + deepest * LINE + w);
            tau = both[2 * deepest];
            factor = both[2 * deepest + 1];
        }
        _Pragma("unroll 4") for (int i = 0; i < LINE; i++)
            z[i * TILE] = i == column ? one() : zero();
        for (int k = deepest; k >= 0; k--) {
            wait_for_words();
            __syncthreads();
            const Element now_tau = tau, now_factor = factor;
            if (k > 0) {  // the next one on its way
                for (int w = thread * PACK; w < LINE; w += TILE * PACK)
                    copy_16_bytes(held + (k - 1) % 2 * LINE + w, mine + (k - 1) * LINE + w);
                tau = both[2 * k - 2];
                factor = both[2 * k - 1];
            }
            if (k <= last) reflect(z, held + k % 2 * LINE, k + SHIFT, now_tau, now_factor);
        }
        if (!live || column >= WIDTH) continue;
        REAL* target = q + b * ((i64)HEIGHT * WIDTH * PARTS);
        _Pragma("unroll 4") for (int i = 0; i < HEIGHT; i++) {
            const Element x = ADJOINT ? conjugate(z[i * TILE]) : z[i * TILE];
            const i64 e = ADJOINT ? (i64)column * HEIGHT + i : (i64)i * WIDTH + column;
            target[e * PARTS] = real_part(x);
            if (PARTS == 2) target[e * PARTS + PARTS - 1] = imaginary_part(x);
        }
    }
}
