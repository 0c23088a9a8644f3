__kernel void E_3_28i12B129_3_2832Di329_2822Di329_28i62B129_3_28i82B129_28padded2F2F429_4(
    long nb,
    long padded,
    ulong a_address,
    ulong l_address)
{
    __global const float *restrict a = (__global const float *)a_address;
    __global float *restrict l = (__global float *)l_address;
    long group = ((long)(get_global_id(0)));
    const long b = group;
    float4 r[6];
    if ((b * 4) < nb) {
        const long last = (nb - (b * 4)) - 1;
        const long lane = (1 < last) ? 1 : last;
        const long lane_1 = (2 < last) ? 2 : last;
        const long lane_2 = (3 < last) ? 3 : last;
        for (long i = 0; i < 3; ++i) {
            for (long c = 0; c < (i + 1); ++c) {
                r[((i * (i + 1)) / 2) + c] = (float4)(a[(((b * 4) * 9) + (i * 3)) + c], a[((((b * 4) + lane) * 9) + (i * 3)) + c], a[((((b * 4) + lane_1) * 9) + (i * 3)) + c], a[((((b * 4) + lane_2) * 9) + (i * 3)) + c]);
            }
        }
        for (long j = 0; j < 3; ++j) {
            const float4 root = rsqrt(r[((j * (j + 1)) / 2) + j]);
            for (long d = 0; d < (3 - j); ++d) {
                r[(((j + d) * ((j + d) + 1)) / 2) + j] = r[(((j + d) * ((j + d) + 1)) / 2) + j] * root;
            }
            for (long e = 0; e < (2 - j); ++e) {
                for (long f = 0; f < (e + 1); ++f) {
                    r[((((j + 1) + e) * (((j + 1) + e) + 1)) / 2) + ((j + 1) + f)] = r[((((j + 1) + e) * (((j + 1) + e) + 1)) / 2) + ((j + 1) + f)] - (r[((((j + 1) + e) * (((j + 1) + e) + 1)) / 2) + j] * r[((((j + 1) + f) * (((j + 1) + f) + 1)) / 2) + j]);
                }
            }
        }
        for (long x = 0; x < 3; ++x) {
            for (long y = 0; y < (x + 1); ++y) {
                const float4 v = r[((x * (x + 1)) / 2) + y];
                l[(((b * 4) * 9) + (x * 3)) + y] = v.s0;
                l[((((b * 4) + lane) * 9) + (x * 3)) + y] = v.s1;
                l[((((b * 4) + lane_1) * 9) + (x * 3)) + y] = v.s2;
                l[((((b * 4) + lane_2) * 9) + (x * 3)) + y] = v.s3;
            }
        }
    }
}
