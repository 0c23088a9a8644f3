extern "C" __global__ void __launch_bounds__(4)
r_8_2_4_4_2_2(
    const float *__restrict__ a,
    float *__restrict__ g)
{
    __shared__ float partial[4];
    __shared__ float partial_1[4];
    long long group = ((long long)(blockIdx.x));
    const long long j = group % 4;
    group = (group / 4);
    const long long i = group % 2;
    group = (group / 2);
    const long long b = group;
    const long long thread = ((long long)(threadIdx.x));
    const long long kl = thread;
    float acc = 0.0f;
    float acc_1 = 0.0f;
    for (long long k = 0; k < 2; ++k) {
        acc = acc + (a[((b * 32) + ((i * 2) * 8)) + ((k * 4) + kl)] * a[((b * 32) + (j * 8)) + ((k * 4) + kl)]);
        acc_1 = acc_1 + (a[((b * 32) + (((i * 2) + 1) * 8)) + ((k * 4) + kl)] * a[((b * 32) + (j * 8)) + ((k * 4) + kl)]);
    }
    partial[thread] = acc;
    partial_1[thread] = acc_1;
    __syncthreads();
    acc = 0.0f;
    acc_1 = 0.0f;
    for (long long kl_1 = 0; kl_1 < 4; ++kl_1) {
        acc = acc + partial[thread - kl * 1 + kl_1 * 1];
        acc_1 = acc_1 + partial_1[thread - kl * 1 + kl_1 * 1];
    }
    __syncthreads();
    if (kl == 0) {
        g[((b * 16) + ((i * 2) * 4)) + j] = acc;
        g[((b * 16) + (((i * 2) + 1) * 4)) + j] = acc_1;
    }
}
