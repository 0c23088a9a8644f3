// What the kernels that find values and those that turn vectors agree on.
//
// Room for rotations is limited, so both kernels run for several rounds: a matrix stops
// when its room (ROOM rotations, TURNS sweeps) is full and goes on in the next round.
// `states` says where it is. The threads of a block sweep together, each over its own
// rows, and write side by side: the k-th rotations of all its LANES matrices lie together.

enum State { RUNNING = 0, CONVERGED = 1, FINISHED = 2 };

// A sweep as one number: which rotations of the list, the first row, how many.
#define SWEEP(start, row, count) ((i64)(start) << 32 | (i64)(row) << 16 | (i64)(count))
#define START_OF(sweep) ((int)((sweep) >> 32))
#define ROW_OF(sweep) ((int)((sweep) >> 16 & 0xffff))
#define COUNT_OF(sweep) ((int)((sweep) & 0xffff))

struct __align__(2 * sizeof(REAL)) Pair {
    REAL c, s;
};

