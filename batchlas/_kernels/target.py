"""What a renderer can do, as plain data; schedulers decide by it, renderers print."""

from __future__ import annotations

from dataclasses import dataclass

from batchlas._kernels.kinds import DType


@dataclass(frozen=True, slots=True)
class TensorCore:
    """One multiply-accumulate instruction of a warp: (m, k) times (k, n)."""

    name: str
    m: int
    n: int
    k: int
    dtype_in: DType
    dtype_out: DType
    threads: int = 32
    needs_tf32: bool = False  # rounds float32 inputs to 10 bits of mantissa


@dataclass(frozen=True, slots=True)
class Renderer:
    """Limits and abilities of a target."""

    name: str
    has_local: bool = True
    has_shared: bool = True
    shared_max: int = 32768  # bytes of work-group memory
    max_workgroup: int = 1024  # threads
    global_max: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    local_max: tuple[int, int, int] = (1024, 1024, 64)
    global_prod_max: int | None = None
    has_warp: bool = False
    has_fp64: bool = True
    max_private_bytes: int = 8192  # of one thread
    vector_widths: tuple[int, ...] = ()  # lanes of its vector types
    tensor_cores: tuple[TensorCore, ...] = ()
    allow_tf32: bool = False

    @property
    def has_vector(self) -> bool:
        """Whether the target has vector types."""
        return bool(self.vector_widths)


SM90_CORES = (
    TensorCore("m8n8k4", 8, 8, 4, DType.FLOAT64, DType.FLOAT64),
    TensorCore("m16n8k8", 16, 8, 8, DType.FLOAT32, DType.FLOAT32, needs_tf32=True),
)
OPENCL = Renderer("opencl", vector_widths=(2, 4, 8, 16))
CUDA = Renderer("cuda", shared_max=49152, has_warp=True, tensor_cores=SM90_CORES)
DPEX = Renderer("dpex", vector_widths=(2, 4, 8, 16))
