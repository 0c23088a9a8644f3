"""Native CUDA kernels for CuPy arrays, hand-written: what the IR does not reach.

===============  =====================================================================
element.cuh      what every source stands on: numbers, groups of threads, shared memory
potrf.cu         Cholesky: a thread, a thread per row, or a block per matrix
jacobi.cu        eigenvalues and singular values of tiny matrices, a thread each
plans            which sizes a kernel takes and how it is launched; imports no CuPy
launch           compiles and launches, on CuPy's current stream
===============  =====================================================================
"""
