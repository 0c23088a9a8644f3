"""CUDA C, for NVRTC or nvcc: no header is needed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from batchlas._kernels.ir import DType
from batchlas._kernels.render.base import C_WORDS, Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batchlas._kernels.render.rendered import LocalArray
    from batchlas._kernels.render.values import Writer

_STATIC_MAX = 49152  # bytes of work-group memory that need no opting in


class Cuda(Dialect):
    """CUDA C; every literal and function of a float kernel is float."""

    reserved = C_WORDS + (
        " class template this new delete operator namespace private public half"
        " threadIdx blockIdx blockDim gridDim warpSize sqrt fma min max group_memory"
    )
    types: ClassVar[Mapping[DType, str]] = {
        DType.BOOL: "int",
        DType.INT32: "int",
        DType.INT64: "long long",
        DType.FLOAT32: "float",
        DType.FLOAT64: "double",
    }
    float_suffix = "f"
    group_id = "blockIdx.x"
    local_id = "threadIdx.x"
    work_item = "blockIdx.x"
    local_form = "__shared__ {type} {name}[{count}];"
    barrier = "__syncthreads();"

    def integer(self, value: int, dtype: DType) -> str:
        text = super().integer(value, dtype)
        return f"{text}L" if text.endswith("L") else text

    def special(self, value: float, dtype: DType) -> str:
        if dtype is DType.FLOAT32:
            bits = "0x7fc00000" if math.isnan(value) else "0x7f800000"
            text = f"__int_as_float({bits})"
        else:
            bits = "0x7ff80000" if math.isnan(value) else "0x7ff00000"
            text = f"__hiloint2double({bits}, 0)"
        return f"(-{text})" if value < 0 else text

    def local_arrays(self, arrays: Sequence[LocalArray]) -> list[str]:
        if not self.dynamic_bytes(arrays):
            return super().local_arrays(arrays)
        lines = ["extern __shared__ double group_memory[];"]
        start = 0
        for array in sorted(arrays, key=lambda a: -a.dtype.itemsize):
            kind = self.types[array.dtype]
            cast = f"({kind} *)((char *)group_memory + {start})"
            lines.append(f"{kind} *const {array.name} = {cast};")
            start += array.nbytes
        return lines

    def dynamic_bytes(self, arrays: Sequence[LocalArray]) -> int:
        total = sum(array.nbytes for array in arrays)
        return total if total > _STATIC_MAX else 0

    def any_thread(self, writer: Writer, go: str) -> None:
        writer.line(f"{go} = __syncthreads_or({go});")

    def pointer(self, kind: str, name: str, *, is_written: bool) -> str:
        const = "" if is_written else "const "
        return f"{const}{kind} *__restrict__ {name}"

    def source(
        self,
        entry: str,
        params: Sequence[str],
        group_size: int,
        body: Sequence[str],
    ) -> str:
        bounds = f"__launch_bounds__({max(group_size, 1)})"
        head = f'extern "C" __global__ void {bounds}\n{entry}(\n    '
        return head + ",\n    ".join(params) + ")\n{\n" + "\n".join(body) + "\n}\n"
