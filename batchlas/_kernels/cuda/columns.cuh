// Lines of vectors in registers, turned by the rotations of a sweep that lie in shared
// memory. A thread has DEEP lines, or SEGMENTS threads beside each other have a part of
// PART elements each. Where a sweep has no rotation there is one by nothing, so that
// every register has a name; chunks without any rotation are left out. A rotation by
// nothing can turn -0 into 0, and whether one is done depends on other matrices: in the
// end there must be no -0.
//
// A sweep runs along a line, and a line's parts work on SEGMENTS sweeps at a time: part
// g on the one that part 0 had g steps before. What a sweep carries over the edge goes
// to the next part for its next step, which at the beginning of that step gives back
// the last element of this part.
#define CHUNK 4  // PART is a multiple
#define ALL 0xffffffffu
static_assert(SEGMENTS == 1 || PART > CHUNK, "what a part gives back comes before its end");

// The slots that a sweep fills; slot j + 1 has the rotation of elements j and j + 1.
struct Range {
    int from, to;
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
                    turn(slots[u * BESIDE], x, y);
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

