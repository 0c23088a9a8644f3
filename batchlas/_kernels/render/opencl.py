"""OpenCL C: vector types for lanes, arrays by pointer or by address."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from batchlas._kernels.ir import DType
from batchlas._kernels.render.base import C_WORDS, Dialect
from batchlas._kernels.render.rendered import ArgKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batchlas._kernels.render.base import Cell
    from batchlas._kernels.render.rendered import Arg
    from batchlas._kernels.render.values import Writer


class OpenCL(Dialect):
    """OpenCL C 2.0.

    Threads leave a loop together: the CPU compiler miscompiled an exit that differs
    between work-items.
    """

    reserved = C_WORDS + (
        " kernel global local constant private half uchar ushort uint ulong"
        " select convert any all vload vstore sqrt fma min max"
    )
    types: ClassVar[Mapping[DType, str]] = {
        DType.BOOL: "int",
        DType.INT32: "int",
        DType.INT64: "long",
        DType.FLOAT32: "float",
        DType.FLOAT64: "double",
    }
    memory_bool = "uchar"
    prefetch = "prefetch(&{place}, {count});"
    has_tiles = True
    # Written as (float8)(a.s0, b.s0, ...) it would be taken apart into its numbers, and
    # the rounds of a transposition melt into something twice as slow.
    shuffle = "__builtin_shufflevector({a}, {b}, {lanes})"
    uniform_exit = True
    group_id = "get_group_id(0)"
    local_id = "get_local_id(0)"
    work_item = "get_global_id(0)"
    local_form = "__local {type} {name}[{count}];"
    barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"

    def type_of(self, dtype: DType, lanes: int = 1) -> str:
        if lanes == 1:
            return self.types[dtype]
        wide = self.mask if dtype is DType.BOOL else dtype
        return f"{self.types[wide]}{lanes}"

    def convert(self, text: str, dtype: DType, lanes: int = 1) -> str:
        if lanes == 1:
            return super().convert(text, dtype)
        return f"convert_{self.type_of(dtype, lanes)}({text})"

    def any_thread(self, writer: Writer, go: str) -> None:
        writer.line(f"{go} = work_group_any({go});")

    def load_vector(self, cell: Cell, _dtype: DType, lanes: int) -> str:
        return f"vload{lanes}(0, &{cell.array}[{cell.at}])"

    def store_vector(
        self, cell: Cell, text: str, dtype: DType, lanes: int, *, streams: bool
    ) -> str:
        place = f"&{cell.array}[{cell.at}]"
        if streams:
            kind = self.type_of(dtype, lanes)
            return f"__builtin_nontemporal_store({text}, (__global {kind} *){place});"
        return f"vstore{lanes}({text}, 0, {place});"

    def vector(self, dtype: DType, lanes: int, texts: Sequence[str]) -> str:
        return f"({self.type_of(dtype, lanes)})({', '.join(texts)})"

    def gathered(self, name: str, dtype: DType, lanes: int, at: str) -> str:
        numbers = f"((__private {self.types[dtype]} *){name})"
        places = (f"{lanes} * {self.lane(at, i)} + {i}" for i in range(lanes))
        return self.vector(dtype, lanes, [f"{numbers}[{place}]" for place in places])

    def lane(self, text: str, lane: int) -> str:
        return f"{text}.s{lane:x}"

    def chosen(self, mask: str, a: str, b: str) -> str:
        return f"select({b}, {a}, {mask})"

    def any_lane(self, text: str) -> str:
        return f"any({text})"

    def pointer(self, kind: str, name: str, *, is_written: bool) -> str:
        const = "" if is_written else "const "
        return f"__global {const}{kind} *restrict {name}"

    def parameter(self, arg: Arg, name: str) -> tuple[str, list[str]]:
        if arg.kind is not ArgKind.ADDRESS:
            return super().parameter(arg, name)
        kind = self.memory_type(arg.dtype)
        const = "" if arg.is_written else "const "
        pointer = self.pointer(kind, name, is_written=arg.is_written)
        cast = f"{pointer} = (__global {const}{kind} *){name}_address;"
        return f"ulong {name}_address", [cast]

    def source(
        self,
        entry: str,
        params: Sequence[str],
        group_size: int,
        body: Sequence[str],
    ) -> str:
        size = f"reqd_work_group_size({group_size}, 1, 1)"
        attribute = f"__attribute__(({size}))\n" if group_size else ""
        head = f"{attribute}__kernel void {entry}(\n    "
        return head + ",\n    ".join(params) + ")\n{\n" + "\n".join(body) + "\n}\n"
