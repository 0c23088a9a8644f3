"""Python text for `numba_dpex.kernel`."""

from __future__ import annotations

import keyword
import math
from typing import TYPE_CHECKING, ClassVar

from batchlas._kernels.ir import BinaryOp, DType, UnaryOp
from batchlas._kernels.render.base import Dialect
from batchlas._kernels.render.rendered import ArgKind, RenderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batchlas._kernels.render.base import Cell
    from batchlas._kernels.render.rendered import Arg
    from batchlas._kernels.render.values import Writer

_HEADER = "import math\n\nimport numba_dpex.kernel_api as kapi\nimport numpy as np\n"
_VECTORS = "\nfrom batchlas._kernels import dpex_vectors as vec\n"


class Dpex(Dialect):
    """numba-dpex: arrays are flat views, literals typed names of the module.

    A bare float literal is double there and breaks devices without it. Vectors are
    those of `dpex_vectors`; their types have names of the module too.
    """

    opening = ":"
    closing = ""
    reserved = " ".join(
        [*keyword.kwlist, "math np kapi vec item abs range"]
        + [f"C{i}" for i in range(999)]
        + [f"{dtype.value}x{lanes}" for dtype in DType for lanes in (2, 4, 8, 16)]
    )
    types: ClassVar[Mapping[DType, str]] = {
        DType.BOOL: "np.int64",
        DType.INT32: "np.int32",
        DType.INT64: "np.int64",
        DType.FLOAT32: "np.float32",
        DType.FLOAT64: "np.float64",
    }
    memory_bool = "np.uint8"
    unary: ClassVar[Mapping[UnaryOp, str]] = {
        UnaryOp.NOT: "(not {a})",
        UnaryOp.NEG: "(-{a})",
        UnaryOp.SQRT: "math.sqrt({a})",
        UnaryOp.RSQRT: "({one} / math.sqrt({a}))",
        UnaryOp.ABS: "abs({a})",
    }
    binary: ClassVar[Mapping[BinaryOp, str]] = {
        **Dialect.binary,
        BinaryOp.FLOORDIV: "({a} // {b})",
        BinaryOp.COPYSIGN: "math.copysign({a}, {b})",
        BinaryOp.AND: "({a} and {b})",
        BinaryOp.OR: "({a} or {b})",
    }
    of_vectors: ClassVar[Mapping[UnaryOp | BinaryOp, str]] = {
        **Dialect.of_vectors,
        UnaryOp.SQRT: "vec.sqrt({a})",
        UnaryOp.RSQRT: "({one} / vec.sqrt({a}))",
        UnaryOp.ABS: "vec.fabs({a})",
        BinaryOp.COPYSIGN: "vec.copysign({a}, {b})",
    }
    fma = "({a} * {b} + {c})"
    hypot = ""  # not among its functions
    quotient = "({a} // {b})"
    choice = "({a} if {c} else {b})"
    conversion = "{type}({a})"
    has_tiles = True
    whole_tiles = True
    lane_of_bool = "{c}"
    uniform_exit = True  # its kernels run on the OpenCL CPU compiler too
    address = ""
    local_is_argument = True
    group_id = "item.get_group().get_group_id(0)"
    local_id = "item.get_local_id(0)"
    work_item = "item.get_id(0)"
    barrier = "kapi.group_barrier(item.get_group(), kapi.MemoryScope.WORK_GROUP)"

    def type_of(self, dtype: DType, lanes: int = 1) -> str:
        if lanes == 1:
            return self.types[dtype]
        wide = self.mask if dtype is DType.BOOL else dtype
        name = f"{wide.value}x{lanes}"
        return self.constants.setdefault(f"vec.kind({self.types[wide]}, {lanes})", name)

    def convert(self, text: str, dtype: DType, lanes: int = 1) -> str:
        if lanes == 1:
            return super().convert(text, dtype)
        return self.vector(dtype, lanes, [text])

    def vector(self, dtype: DType, lanes: int, texts: Sequence[str]) -> str:
        given = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        return f"vec.make({self.type_of(dtype, lanes)}, {given})"

    def load_vector(self, cell: Cell, dtype: DType, lanes: int) -> str:
        return f"vec.load({self.type_of(dtype, lanes)}, {cell.array}, {cell.at})"

    def store_vector(
        self, cell: Cell, text: str, _dtype: DType, _lanes: int, *, streams: bool
    ) -> str:
        assert not streams  # only tiles do
        return f"vec.store({cell.array}, {cell.at}, {text})"

    def load_tile(self, first: Cell, pitch: int, dtype: DType, lanes: int) -> str:
        kind = self.type_of(dtype, lanes)
        return f"vec.load_tile({kind}, {first.array}, {first.at}, {pitch})"

    def store_tile(
        self, first: Cell, pitch: int, columns: Sequence[str], *, streams: bool
    ) -> str:
        store = "stream_tile" if streams else "store_tile"
        tile = f"({', '.join(columns)})"
        return f"vec.{store}({first.array}, {first.at}, {pitch}, {tile})"

    def vector_cell(self, cell: Cell) -> str:
        return f"vec.cell({cell.array}, {cell.at})"

    def set_vector_cell(self, cell: Cell, text: str) -> str:
        return f"vec.set_cell({cell.array}, {cell.at}, {text})"

    def gathered(self, name: str, _dtype: DType, _lanes: int, at: str) -> str:
        return f"vec.gathered({name}, {at})"

    def lane(self, text: str, lane: int) -> str:
        return f"vec.lane({text}, {lane})"

    def chosen(self, mask: str, a: str, b: str) -> str:
        return f"vec.where({mask}, {a}, {b})"

    def any_lane(self, text: str) -> str:
        return f"vec.any_lane({text})"

    def integer(self, value: int, _dtype: DType) -> str:
        return str(value)

    def finite(self, value: float, dtype: DType) -> str:
        return self._module_name(repr(value), dtype)

    def special(self, value: float, dtype: DType) -> str:
        text = "np.nan" if math.isnan(value) else "np.inf"
        return self._module_name(f"-{text}" if value < 0 else text, dtype)

    def _module_name(self, text: str, dtype: DType) -> str:
        value = f"{self.types[dtype]}({text})"
        name = f"C{len(self.constants)}"
        return self.constants.setdefault(value, name)

    def operation(self, form: str, dtype: DType, **operands: str) -> str:
        if "{one}" in form:
            operands["one"] = self.finite(1.0, dtype)
        return super().operation(form, dtype, **operands)

    def condition(self, *, value: bool) -> str:
        return "(1 == 1)" if value else "(1 == 0)"

    def kept_bool(self, text: str) -> str:
        return f"(1 if {text} else 0)"

    def subscript(self, text: str) -> str:
        """Return an unsigned subscript: a signed one may count from the end."""
        return text if text.isdecimal() else f"np.uint64({text})"

    def declaration(self, _type_text: str, name: str, text: str) -> str:
        return f"{name} = {text}"

    def assignment(self, target: str, text: str) -> str:
        return f"{target} = {text}"

    def call(self, text: str) -> str:
        return text

    def private_array(
        self, dtype: DType, name: str, count: int, lanes: int, *, zeroed: bool
    ) -> str:
        fill = ", fill_zeros=True" if zeroed else ""
        kind = self.type_of(dtype, lanes)
        return f"{name} = kapi.PrivateArray({count}, {kind}{fill})"

    def for_header(self, name: str, size: str) -> str:
        return f"for {name} in range({size})"

    def if_header(self, cond: str) -> str:
        return f"if {cond}"

    def while_header(self, name: str) -> str:
        return f"while {name} != 0"

    def any_thread(self, _writer: Writer, _go: str) -> None:
        msg = (
            "numba-dpex threads cannot leave a Repeat together: a vote through "
            "work-group memory hung on the CPU; split no thread axis, or author a "
            "fixed number of rounds"
        )
        raise RenderError(msg)

    def parameter(self, arg: Arg, name: str) -> tuple[str, list[str]]:
        if arg.kind is ArgKind.ADDRESS:
            return super().parameter(arg, name)
        return name, []

    def source(
        self,
        entry: str,
        params: Sequence[str],
        _group_size: int,
        body: Sequence[str],
    ) -> str:
        constants = [f"{name} = {text}" for text, name in self.constants.items()]
        vectors = any(text.startswith("vec.") for text in self.constants)
        head = "\n".join([_HEADER + _VECTORS * vectors, *constants, "", ""])
        signature = f"def {entry}({', '.join(['item', *params])}):\n"
        return f"{head}\n{signature}" + "\n".join(body) + "\n"
