// What every CUDA kernel here stands on: numbers, groups of threads, and the way of a
// matrix between device memory and shared memory. Put before each source file.
//
// Compiled with -DREAL=float|double, -DPARTS=1|2 (2 is complex) and what the file asks
// for; matrix orders are compile-time numbers. Device memory is read and written as
// words of REAL, since a stack may begin at any multiple of its size. Index arithmetic
// over the batch is 64-bit; block-stride loops take any batch.

typedef long long i64;

#if PARTS == 2
struct __align__(2 * sizeof(REAL)) Element {
    REAL re, im;
};
__device__ inline Element element(REAL re, REAL im) { return {re, im}; }
__device__ inline REAL real_part(Element x) { return x.re; }
__device__ inline REAL imaginary_part(Element x) { return x.im; }
__device__ inline Element conjugate(Element x) { return {x.re, -x.im}; }
__device__ inline REAL square(Element x) { return x.re * x.re + x.im * x.im; }
__device__ inline Element operator+(Element x, Element y) {
    return {x.re + y.re, x.im + y.im};
}
__device__ inline Element operator-(Element x, Element y) {
    return {x.re - y.re, x.im - y.im};
}
__device__ inline Element operator*(Element x, Element y) {
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
__device__ inline Element operator*(Element x, REAL f) { return {x.re * f, x.im * f}; }
#else
typedef REAL Element;
__device__ inline Element element(REAL re, REAL) { return re; }
__device__ inline REAL real_part(Element x) { return x; }
__device__ inline REAL imaginary_part(Element) { return (REAL)0; }
__device__ inline Element conjugate(Element x) { return x; }
__device__ inline REAL square(Element x) { return x * x; }
#endif

// sum - x y, where y is real, with one rounding: a chain of them waits for one operation
// each.
__device__ inline float minus_product(float sum, float x, float y) { return fmaf(-x, y, sum); }
__device__ inline double minus_product(double sum, double x, double y) { return fma(-x, y, sum); }
#if PARTS == 2
__device__ inline Element minus_product(Element sum, Element x, REAL y) {
    return {minus_product(sum.re, x.re, y), minus_product(sum.im, x.im, y)};
}
#endif

__device__ inline Element zero() { return element((REAL)0, (REAL)0); }
__device__ inline Element one() { return element((REAL)1, (REAL)0); }

// A constant in either precision.
__device__ inline float choose(float single, double, float) { return single; }
__device__ inline double choose(float, double full, double) { return full; }
#define EITHER(single, full) choose(single, full, (REAL)0)

// Unit roundoff times two, and a square below which digits are lost to underflow.
__device__ inline REAL epsilon() { return EITHER(1.1920929e-7f, 2.220446049250313e-16); }
__device__ inline REAL least_square() { return EITHER(1e-30f, 1e-290); }

__device__ inline REAL not_a_number() { return (REAL)__int_as_float(0x7fc00000); }
__device__ inline REAL infinity() { return (REAL)__int_as_float(0x7f800000); }
__device__ inline Element failed_element() {
    return element(not_a_number(), not_a_number());
}
__device__ inline float size_of(float x) { return fabsf(x); }
__device__ inline double size_of(double x) { return fabs(x); }
__device__ inline float larger(float x, float y) { return fmaxf(x, y); }  // not a NaN
__device__ inline double larger(double x, double y) { return fmax(x, y); }
__device__ inline bool is_finite(REAL x) { return size_of(x) < infinity(); }
__device__ inline bool is_finite_element(Element x) {
    return is_finite(real_part(x)) && is_finite(imaginary_part(x));
}

__device__ inline float inverse_root(float x) { return rsqrtf(x); }
__device__ inline double inverse_root(double x) { return rsqrt(x); }

// The same for numbers that are neither tiny nor huge, without the library's branches:
// the hardware's approximation and one step of Newton, or of third order.
__device__ inline float quick_inverse_root(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
    const float y = inverse_root(x);
#endif
    return y + 0.5f * y * (1.0f - x * y * y);
}
__device__ inline double quick_inverse_root(double x) {
#ifdef __CUDA_ARCH__
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#else
    const double y = inverse_root(x);
#endif
    const double rest = 1.0 - x * y * y;
    return y + y * rest * (0.5 + 0.375 * rest);
}

__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline double root(double x) { return sqrt(x); }

__device__ inline int exponent_of(float x) { return ilogbf(x); }
__device__ inline int exponent_of(double x) { return ilogb(x); }
__device__ inline float shifted(float x, int e) { return ldexpf(x, e); }
__device__ inline double shifted(double x, int e) { return ldexp(x, e); }
__device__ inline REAL power(int e) { return shifted((REAL)1, e); }

// The exponent that brings numbers of at most `most` near 1. Its power and the inverse
// are both in range.
__device__ inline int scale_exponent(REAL most) {
    if (!(most > 0)) return 0;
    const int e = exponent_of(most), limit = sizeof(REAL) == 4 ? 120 : 1000;
    return e < -limit ? -limit : e > limit ? limit : e;
}

__device__ inline REAL largest_part(Element x) {
    return larger(size_of(real_part(x)), size_of(imaginary_part(x)));
}

// What makes the Hermitian [[a, g], [conj(g), a + h]] diagonal: the columns p, q become
// c p - conj(s) q and s p + c q. The diagonal loses and gains `shift`.
struct Rotation {
    REAL c, shift;
    Element s;
};

// `size2` is the square of g; it and its quotient by 1 are far from the ends of the range.
__device__ inline Rotation rotation_of(REAL h, Element g, REAL size2) {
    const REAL u = quick_inverse_root(h * h + 4 * size2);
    const REAL half = (REAL)0.5 + (REAL)0.5 * size_of(h) * u;
    const REAL inverse = quick_inverse_root(half), sine = (h < 0 ? -u : u) * inverse;
    return {half * inverse, size2 * (sine * inverse), g * sine};
}

__device__ inline void turn(const Rotation& r, Element& p, Element& q) {
    const Element x = p;
    p = x * r.c - conjugate(r.s) * q;
    q = r.s * x + q * r.c;
}

// Shared memory -----------------------------------------------------------------------

__device__ inline char* shared_memory() {
    extern __shared__ __align__(16) char bytes[];
    return bytes;
}

__device__ inline void copy_word(REAL* shared, const REAL* source) {
#ifdef __CUDA_ARCH__
    const unsigned target = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target), "l"(source),
                 "n"((int)sizeof(REAL))
                 : "memory");
#else
    *shared = *source;
#endif
}

// The same for 16 bytes at once.
__device__ inline void copy_16_bytes(void* shared, const void* source) {
#ifdef __CUDA_ARCH__
    const unsigned target = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(target), "l"(source)
                 : "memory");
#else
    for (int i = 0; i < 4; i++) ((int*)shared)[i] = ((const int*)source)[i];
#endif
}

__device__ inline void prefetch(const void* source) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(source));
#endif
}

__device__ inline void wait_for_words() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// As many elements as one instruction moves; their address is a multiple of 16 bytes.
#define PACK (16 / (int)sizeof(Element) > 0 ? 16 / (int)sizeof(Element) : 1)
struct __align__(16) Pack {
    Element x[PACK];
};

// Groups: GROUP threads work on one matrix, a power of two or all of a block ----------

template <int SIZE>
__device__ inline void group_sync() {
    if (SIZE <= 32) __syncwarp();
    else __syncthreads();
}

// Sum over a group, the same bits in every thread. `scratch` is the group's own and
// holds a number per warp; two sums in a row may share it.
template <int SIZE>
__device__ inline REAL group_sum(REAL x, REAL* scratch) {
    const int width = SIZE < 32 ? SIZE : 32;
    for (int step = width / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    if (SIZE <= 32) return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    REAL sum = 0;
    for (int warp = 0; warp < SIZE / 32; warp++) sum += scratch[warp];
    return sum;
}

template <int SIZE>
__device__ inline REAL group_max(REAL x, REAL* scratch) {
    const int width = SIZE < 32 ? SIZE : 32;
    for (int step = width / 2; step > 0; step /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, step));
    if (SIZE <= 32) return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    REAL most = 0;
    for (int warp = 0; warp < SIZE / 32; warp++) most = larger(most, scratch[warp]);
    return most;
}
