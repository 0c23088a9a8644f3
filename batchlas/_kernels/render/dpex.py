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

    from batchlas._kernels.render.rendered import Arg
    from batchlas._kernels.render.values import Writer

_HEADER = "import math\n\nimport numba_dpex.kernel_api as kapi\nimport numpy as np\n"


class Dpex(Dialect):
    """numba-dpex: arrays are flat views, literals typed names of the module.

    A bare float literal is double there and breaks devices without it.
    """

    opening = ":"
    closing = ""
    reserved = " ".join(
        [*keyword.kwlist, "math np kapi item abs range", *(f"C{i}" for i in range(999))]
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
    negation = "(not {a})"
    fma = "({a} * {b} + {c})"
    hypot = ""  # not among its functions
    quotient = "({a} // {b})"
    choice = "({a} if {c} else {b})"
    conversion = "{type}({a})"
    uniform_exit = True  # its kernels run on the OpenCL CPU compiler too
    address = ""
    local_is_argument = True
    group_id = "item.get_group().get_group_id(0)"
    local_id = "item.get_local_id(0)"
    work_item = "item.get_id(0)"
    barrier = "kapi.group_barrier(item.get_group(), kapi.MemoryScope.WORK_GROUP)"

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
        self, dtype: DType, name: str, count: int, _lanes: int, *, zeroed: bool
    ) -> str:
        fill = ", fill_zeros=True" if zeroed else ""
        return f"{name} = kapi.PrivateArray({count}, {self.types[dtype]}{fill})"

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
        head = "\n".join([_HEADER, *constants, "", ""])
        signature = f"def {entry}({', '.join(['item', *params])}):\n"
        return f"{head}\n{signature}" + "\n".join(body) + "\n"
