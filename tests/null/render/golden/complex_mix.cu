extern "C" __global__ void __launch_bounds__(1)
r_padded_3(
    long long nb,
    long long padded,
    const float *__restrict__ x,
    float *__restrict__ y,
    float *__restrict__ s)
{
    long long group = ((long long)(blockIdx.x));
    const long long b = group;
    float r_re[2];
    float r_im[2];
    if (b < nb) {
        const float v_re = x[2 * (b * 3)];
        const float v_im = -x[2 * (b * 3) + 1];
        const float v_re_1 = x[2 * ((b * 3) + 1)];
        const float v_im_1 = x[2 * ((b * 3) + 1) + 1];
        const float z_re = (v_re * v_re_1) - (v_im * v_im_1);
        const float z_im = (v_re * v_im_1) + (v_im * v_re_1);
        const float v_re_2 = x[2 * ((b * 3) + 2)];
        const float v_im_2 = x[2 * ((b * 3) + 2) + 1];
        const float v = fabsf(v_re_2);
        const float v_1 = fabsf(v_im_2);
        const float big = (v < v_1) ? v_1 : v;
        const float c = v_re_2 / big;
        const float c_1 = v_im_2 / big;
        const float norm = (v_re_2 * c) + (v_im_2 * c_1);
        const float z_re_1 = ((z_re * c) + (z_im * c_1)) / norm;
        const float z_im_1 = ((z_im * c) - (z_re * c_1)) / norm;
        r_re[0] = z_re_1;
        r_im[0] = z_im_1;
        const float v_re_3 = x[2 * (b * 3)];
        const float v_im_3 = x[2 * (b * 3) + 1];
        const float v_re_4 = x[2 * ((b * 3) + 1)];
        const float v_im_4 = x[2 * ((b * 3) + 1) + 1];
        const float z_re_2 = (v_re_3 * v_re_4) - (v_im_3 * v_im_4);
        const float z_im_2 = (v_re_3 * v_im_4) + (v_im_3 * v_re_4);
        const float v_re_5 = z_re_2 + r_re[0];
        const float v_im_5 = z_im_2 + r_im[0];
        r_re[1] = v_re_5;
        r_im[1] = v_im_5;
        const float v_re_6 = r_re[1];
        const float v_im_6 = r_im[1];
        const float z_re_3 = (1.0f * v_re_6) - (2.0f * v_im_6);
        const float z_im_3 = (1.0f * v_im_6) + (2.0f * v_re_6);
        const float v_re_7 = r_re[0] - z_re_3;
        const float v_im_7 = (-r_im[0]) - z_im_3;
        r_re[0] = v_re_7;
        r_im[0] = v_im_7;
        const int v_2 = (r_re[0] > r_im[1]);
        const float v_re_8 = (v_2 != 0) ? r_re[0] : (-r_re[1]);
        const float v_im_8 = (v_2 != 0) ? r_im[0] : (-r_im[1]);
        y[2 * (b * 3)] = v_re_8;
        y[2 * (b * 3) + 1] = v_im_8;
        float acc = 0.0f;
        float acc_im = 0.0f;
        for (long long k = 0; k < 3; ++k) {
            const float v_re_9 = x[2 * ((b * 3) + k)];
            const float v_im_9 = x[2 * ((b * 3) + k) + 1];
            const float v_re_10 = x[2 * ((b * 3) + k)];
            const float v_im_10 = -x[2 * ((b * 3) + k) + 1];
            const float z_re_4 = (v_re_9 * v_re_10) - (v_im_9 * v_im_10);
            const float z_im_4 = (v_re_9 * v_im_10) + (v_im_9 * v_re_10);
            const float v_re_11 = acc + z_re_4;
            const float v_im_11 = acc_im + z_im_4;
            acc = v_re_11;
            acc_im = v_im_11;
        }
        const float v_re_12 = acc + r_im[0];
        const float v_im_12 = acc_im + r_re[1];
        y[2 * ((b * 3) + 1)] = v_re_12;
        y[2 * ((b * 3) + 1) + 1] = v_im_12;
        const float v_re_13 = (float)(hypotf(r_re[0], r_im[0]));
        const float v_im_13 = 0.0f;
        y[2 * ((b * 3) + 2)] = v_re_13;
        y[2 * ((b * 3) + 2) + 1] = v_im_13;
        const float v_3 = hypotf(x[2 * (b * 3)], x[2 * (b * 3) + 1]);
        const float v_4 = hypotf(r_re[1], r_im[1]);
        s[b] = (v_3 < v_4) ? v_4 : v_3;
        const float new_re = y[2 * ((b * 3) + 2)];
        const float new_im = y[2 * ((b * 3) + 2) + 1];
        const float new_re_1 = y[2 * ((b * 3) + 1)];
        const float new_im_1 = y[2 * ((b * 3) + 1) + 1];
        y[2 * ((b * 3) + 1)] = new_re;
        y[2 * ((b * 3) + 1) + 1] = new_im;
        y[2 * ((b * 3) + 2)] = new_re_1;
        y[2 * ((b * 3) + 2) + 1] = new_im_1;
    }
}
