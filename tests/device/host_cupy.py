"""A stand-in for CuPy and cuSOLVER on the host, enough for the cuSOLVER adapter.

Arrays are NumPy's, kernels are ``stage.cu`` built for the host, and every cuSOLVER
routine is NumPy's own on column-major memory at the addresses it is given, with the
documented quirks: the unnamed triangle of a Cholesky factor becomes scratch, gesvd
refuses wide matrices, gesvdjBatched returns V and takes no order beyond 32. It shows
that layouts and pointers are right, not that cuSOLVER is.
"""

# ruff: noqa: PLR0917 - the signatures are cuSOLVER's

from __future__ import annotations

import ctypes
import sys
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np
from stage_host import build

GARBAGE = -7.25  # what fresh memory holds; finite, so that reading it shows


class HostArray(np.ndarray):
    device = nullcontext()

    @property
    def data(self):
        return SimpleNamespace(ptr=self.__array_interface__["data"][0], device_id=0)


def asarray(a):
    return np.asarray(a).view(HostArray)


def empty(shape, dtype="d"):
    return np.full(shape, GARBAGE, dtype).view(HostArray)


def matrix(pointer, rows, columns, ld, char):
    """Return the column-major matrix at an address."""
    kind = np.dtype(char)
    buffer = (ctypes.c_char * (ld * columns * kind.itemsize)).from_address(pointer)
    return np.frombuffer(buffer, kind).reshape(columns, ld).T[:rows]


def vector(pointer, n, char):
    return matrix(pointer, n, 1, n, char)[:, 0]


def hermitian(v, fill):
    """Complete a matrix of which the lower (0) or upper (1) triangle is stored."""
    half = np.tril(v, -1) if fill == 0 else np.triu(v, 1)
    return half + half.conj().T + np.diag(np.diagonal(v).real)


def factor(v, fill):
    """Overwrite `v` as potrf does and return its status."""
    n = len(v)
    full = hermitian(v, fill).astype(np.result_type(v, "d"))
    for order in range(1, n + 1):
        try:
            lower = np.linalg.cholesky(full[:order, :order])
        except np.linalg.LinAlgError:
            return order
    scratch = np.full((n, n), GARBAGE)
    kept = np.tril(lower) if fill == 0 else lower.conj().T
    inside = np.tri(n, dtype=bool) if fill == 0 else np.tri(n, dtype=bool).T
    v[...] = np.where(inside, kept, scratch)
    return 0


def decompose(v, full):
    double = v.astype(np.result_type(v, "d"))
    return np.linalg.svd(double, full_matrices=full)


def eigensolve(v, w, vectors, fill=0):
    values, columns = np.linalg.eigh(hermitian(v, fill).astype(np.result_type(v, "d")))
    w[...] = values
    v[...] = columns if vectors else GARBAGE


def query(*_arguments):
    return 5  # elements of workspace


def hermitian_routines(c):
    """Return a dtype's Cholesky and eigenvalue routines, without leading letter."""
    real = c.lower()
    size = np.dtype(c).itemsize
    width = np.dtype(real).itemsize

    def potrf(_handle, fill, n, a, lda, _work, _lwork, info):
        vector(info, 1, "i")[0] = factor(matrix(a, n, n, lda, c), fill)

    def potrf_batched(_handle, fill, n, pointers, lda, info, batch):
        assert batch <= 65535
        for i, pointer in enumerate(vector(pointers, batch, "q")):
            vector(info, batch, "i")[i] = factor(
                matrix(int(pointer), n, n, lda, c), fill
            )

    def syevd(_handle, jobz, fill, n, a, lda, w, _work, _lwork, info):
        eigensolve(matrix(a, n, n, lda, c), vector(w, n, real), jobz, fill)
        vector(info, 1, "i")[0] = 0

    def syevj_batched(
        _handle, jobz, fill, n, a, lda, w, _work, _lwork, info, _params, batch
    ):
        for i in range(batch):
            values = vector(w + i * n * width, n, real)
            v = matrix(a + i * lda * n * size, n, n, lda, c)
            eigensolve(v, values, jobz, fill)
            vector(info, batch, "i")[i] = 0

    he = "he" if c in "FD" else "sy"
    return {
        "potrf": potrf,
        "potrf_bufferSize": query,
        "potrfBatched": potrf_batched,
        f"{he}evd": syevd,
        f"{he}evd_bufferSize": query,
        f"{he}evjBatched": syevj_batched,
        f"{he}evjBatched_bufferSize": query,
    }


def svd_routines(c):
    """Return a dtype's singular value routines, without leading letter."""
    real = c.lower()
    size = np.dtype(c).itemsize
    width = np.dtype(real).itemsize

    def gesvdj_batched(_handle, jobz, m, n, a, _lda, s, u, ldu, v, ldv, *rest):
        _work, _lwork, info, _params, batch = rest
        assert jobz == 1
        assert max(m, n) <= 32
        k = min(m, n)
        for i in range(batch):
            p, values, qh = decompose(matrix(a + i * m * n * size, m, n, m, c), True)
            vector(s + i * k * width, k, real)[...] = values
            matrix(u + i * ldu * m * size, m, m, ldu, c)[...] = p
            matrix(v + i * ldv * n * size, n, n, ldv, c)[...] = qh.conj().T
            vector(info, batch, "i")[i] = 0

    def gesvd(_handle, jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, *rest):
        _work, _lwork, _rwork, info = rest
        assert m >= n
        assert jobu == jobvt
        assert chr(jobu) in "NSA"
        p, values, qh = decompose(matrix(a, m, n, lda, c), chr(jobu) == "A")
        vector(s, n, real)[...] = values
        if chr(jobu) != "N":
            matrix(u, m, p.shape[1], ldu, c)[...] = p
            matrix(vt, n, n, ldvt, c)[...] = qh
        matrix(a, m, n, lda, c)[...] = GARBAGE
        vector(info, 1, "i")[0] = 0

    return {
        "gesvdjBatched": gesvdj_batched,
        "gesvdjBatched_bufferSize": query,
        "gesvd": gesvd,
        "gesvd_bufferSize": query,
    }


def xsyev_batched():
    """Return stand-ins for the two functions that are called through ctypes."""
    chars = {0: "f", 1: "d", 4: "F", 5: "D"}

    def query(*arguments):
        arguments[11]._obj.value, arguments[12]._obj.value = 40, 8
        return 0

    def solve(_handle, _params, jobz, uplo, n, kind, a, lda, real, w, compute, *rest):
        _work, device_bytes, _host, host_bytes, info, batch = rest
        assert (device_bytes, host_bytes, compute) == (40, 8, kind)
        char = chars[kind]
        solver = hermitian_routines(char)[
            "heevjBatched" if char in "FD" else "syevjBatched"
        ]
        assert chars[real] == char.lower()
        solver(0, jobz, uplo, n, a, lda, w, 0, 0, info, 0, batch)
        for i in range(batch):  # the real one keeps close values in no order
            values = vector(
                w + i * n * np.dtype(char.lower()).itemsize, n, char.lower()
            )
            v = matrix(a + i * lda * n * np.dtype(char).itemsize, n, n, lda, char)
            values[...], v[...] = values[::-1].copy(), v[:, ::-1].copy()
        return 0

    return query, solve


def _modules(folder):
    """Return the modules that stand for CuPy, by name."""
    lib = ModuleType("cupy_backends.cuda.libs.cusolver")
    for c in "fdFD":
        for name, routine in (hermitian_routines(c) | svd_routines(c)).items():
            letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[c]
            vars(lib)[letter + name] = routine
    quiet = dict.fromkeys(
        ("createSyevjInfo", "createGesvdjInfo", "createParams"), lambda: 1
    )
    quiet |= dict.fromkeys(
        ("destroySyevjInfo", "destroyGesvdjInfo", "setStream"), lambda *_args: None
    )
    vars(lib).update(quiet, CUSOLVER_EIG_MODE_VECTOR=1, CUSOLVERError=RuntimeError)
    cublas = ModuleType("cupy_backends.cuda.libs.cublas")
    vars(cublas).update(CUBLAS_FILL_MODE_LOWER=0, CUBLAS_FILL_MODE_UPPER=1)

    kernels = {}

    def raw_module(code, options):
        assert "prepare" in code
        char = "fdFD"["double" in options[1] :: 2][options[2].endswith("2")]
        if char not in kernels:
            kernels[char] = build(char, folder)
        return SimpleNamespace(get_function=kernels[char].__getitem__)

    cupy = ModuleType("cupy")
    event = SimpleNamespace(record=lambda: None, done=True)
    vars(cupy).update(
        ndarray=HostArray,
        empty=empty,
        zeros=lambda shape, dtype: np.zeros(shape, dtype).view(HostArray),
        ascontiguousarray=lambda a: np.ascontiguousarray(a).view(HostArray),
        RawModule=raw_module,
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0),
        cuda=SimpleNamespace(
            device=SimpleNamespace(get_cusolver_handle=lambda: 1),
            runtime=SimpleNamespace(
                getDevice=lambda: 0, memGetInfo=lambda: (1 << 30, 1 << 32)
            ),
            get_current_stream=lambda: SimpleNamespace(
                ptr=0, is_capturing=lambda: False
            ),
            Event=lambda **_kwargs: event,
        ),
    )
    libs = ModuleType("cupy_backends.cuda.libs")
    vars(libs).update(cusolver=lib, cublas=cublas)
    return {
        "cupy": cupy,
        "cupy_backends": ModuleType("cupy_backends"),
        "cupy_backends.cuda": ModuleType("cupy_backends.cuda"),
        "cupy_backends.cuda.libs": libs,
        "cupy_backends.cuda.libs.cusolver": lib,
        "cupy_backends.cuda.libs.cublas": cublas,
    }


OURS = ("cuda_kernels", "cuda_memory", "cusolver", "cusolver_svd", "xsyevbatched")


@contextmanager
def adapter(folder):
    """Yield `batchlas._vendor.cusolver` as it is on this stand-in."""
    import batchlas._vendor as package

    fakes = _modules(folder)
    ours = [f"batchlas._vendor.{name}" for name in OURS]
    saved = {name: sys.modules.pop(name, None) for name in (*fakes, *ours)}
    attributes = {name: vars(package).pop(name, None) for name in OURS}
    sys.modules.update(fakes)
    try:
        from batchlas._vendor import cusolver, xsyevbatched

        functions = xsyev_batched()
        xsyevbatched._load = lambda: functions
        yield cusolver
    finally:
        for name in (*fakes, *ours):
            sys.modules.pop(name, None)
        sys.modules.update({k: v for k, v in saved.items() if v is not None})
        for name in OURS:
            vars(package).pop(name, None)
        vars(package).update({k: v for k, v in attributes.items() if v is not None})
