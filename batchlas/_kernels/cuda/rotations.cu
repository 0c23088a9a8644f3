// The rows of the vectors times the rotations that `values` wrote down, and their
// columns in the order of the values. Rows do not depend on each other.
//
// Lines of WIDTH elements, HEIGHT of them per matrix; the first N of each are turned.
// A line is a row, or a column (ACROSS) of the array. TILE threads have a line each.
// A rotation is NUMBERS numbers of which two from OFFSET on are ours. SIGNED says that a
// changed sign of a value is made good.
#define STEP (TILE + 1)
#define CHUNK (N <= 32 || sizeof(Element) > 8 ? 4 : 8)
#define APART (LANES * NUMBERS / 2)  // pairs from one rotation to the next
#define AHEAD 32  // rotations between the one that is asked for and the one in use

// At most CHUNK rotations of a sweep that follow each other.
struct Piece {
    int row, count;
    Pair turns[CHUNK];
};

// Takes a matrix's rotations from device memory, a piece ahead of their use. Behind the
// last one there is room for a piece.
struct Reader {
    const Pair *list, *at;
    const i64* sweeps;
    int left, row, count;  // sweeps after this one; what is left of this one
    i64 after;

    __device__ void open(const Pair* rotations, const i64* first, int sweeps_in_all) {
        list = rotations;
        sweeps = first;
        left = sweeps_in_all;
        count = 0;
        after = left > 0 ? sweeps[0] : 0;
    }

    // False where there is none left.
    __device__ bool next(Piece& piece) {
        while (count == 0) {
            if (left == 0) return false;
            left--;
            at = list + (i64)START_OF(after) * APART;
            row = ROW_OF(after);
            count = COUNT_OF(after);
            sweeps += LANES;
            if (left > 0) after = sweeps[0];
        }
        piece.row = row;
        piece.count = count < CHUNK ? count : CHUNK;
        // Side by side they are far apart, and what is not needed costs a transaction.
        _Pragma("unroll") for (int u = 0; u < CHUNK; u++)
            if (LANES == 1 || u < piece.count) piece.turns[u] = at[u * APART];
        if (LANES == 1) prefetch(at + AHEAD * APART);
        at += piece.count * APART;
        row += piece.count;
        count -= piece.count;
        return true;
    }
};

// Turn one line. Beyond the end of a piece the rotations are by nothing, which needs
// CHUNK rows after the last.
template <bool WHOLE>
__device__ inline void turn_line(Element* z, const Piece& piece) {
    z += piece.row * STEP;
    Element x = z[0], y[CHUNK];
    _Pragma("unroll") for (int u = 0; u < CHUNK; u++) y[u] = z[(u + 1) * STEP];
    _Pragma("unroll") for (int u = 0; u < CHUNK; u++) {
        const bool is_ours = WHOLE || u < piece.count;
        const REAL c = is_ours ? piece.turns[u].c : (REAL)1;
        const REAL s = is_ours ? piece.turns[u].s : (REAL)0;
        const Element kept = x * c + y[u] * s;
        x = minus_product(y[u] * c, x, s);
        y[u] = kept;
    }
    _Pragma("unroll") for (int u = 0; u < CHUNK; u++) z[u * STEP] = y[u];
    z[CHUNK * STEP] = x;
}

__device__ inline void turn(Element* z, const Piece& piece) {
    if (piece.count == CHUNK) turn_line<true>(z, piece);
    else turn_line<false>(z, piece);
}

extern "C" __global__ void __launch_bounds__(TILE * GROUPS)
    rotate(REAL* q, const REAL* rotations, const i64* sweeps, const int* counts,
           const int* orders, const int* states, const int* info, i64 batch) {
    const int thread = threadIdx.x % TILE, group = threadIdx.x / TILE;
    Element* tile = (Element*)shared_memory() + group * ((WIDTH + CHUNK) * STEP);
    const int start = blockIdx.y * TILE;
    const int lines = HEIGHT - start < TILE ? HEIGHT - start : TILE;
    _Pragma("unroll") for (int j = 0; j < CHUNK; j++)
        tile[(WIDTH + j) * STEP + thread] = zero();
    for (i64 first = (i64)blockIdx.x * GROUPS; first < batch;
         first += (i64)gridDim.x * GROUPS) {
        const i64 b = first + group;
        const bool live = b < batch && states[b] != FINISHED;
        const bool is_done = live && states[b] == CONVERGED;
        REAL* words = q + (b < batch ? b : 0) * ((i64)HEIGHT * WIDTH * PARTS);
        Reader reader;
        Piece piece;
        bool more = false;
        if (live && thread < lines) {
            const i64 side = b / LANES * LANES;
            const int lane = (int)(b - side);
            reader.open((const Pair*)rotations + (side * ROOM + lane) * (NUMBERS / 2) + OFFSET / 2,
                        sweeps + side * TURNS + lane, counts[b]);
            more = reader.next(piece);
        }
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
        while (more) {
            Piece other;
            more = reader.next(other);
            turn(tile + thread, piece);
            if (!more) break;
            more = reader.next(piece);
            turn(tile + thread, other);
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
