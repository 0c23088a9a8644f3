"""The state of printing one kernel: its plan, its names, its lines."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from batchlas._kernels.ir import Buffer, DType
from batchlas._kernels.render.complex_parts import ComplexParts
from batchlas._kernels.render.expressions import Expressions
from batchlas._kernels.render.memory import Memory
from batchlas._kernels.render.rendered import Arg, ArgKind, LocalArray, Passing
from batchlas._kernels.render.values import Names, Writer, bare
from batchlas._kernels.walk import post_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batchlas._kernels.ir import Kernel
    from batchlas._kernels.render.base import Dialect
    from batchlas._kernels.render.plan import Plan


class Session:
    """One kernel on its way to text; each has its own dialect, names and writer."""

    def __init__(self, plan: Plan, dialect: Dialect) -> None:
        self.plan = plan
        self.dialect = dialect
        dialect.mask = mask_dtype(plan.kernel)
        self.names = Names(dialect.reserved.split())
        self.writer = Writer(dialect.opening, dialect.closing)
        self.params: dict[str, str] = {}
        self.args: list[Arg] = []
        self.locals: list[LocalArray] = []
        self.bound: dict[int, str] = {}  # names of group and thread axes
        self.thread_strides: dict[int, int] = {}
        self.thread_id = "0"
        self.memory = Memory(self)
        self.expressions = Expressions(self, self.memory)
        self.complex = ComplexParts(self.expressions)
        for param in plan.kernel.params:
            self._declare_argument(param.name)

    def _declare_argument(self, name: str) -> None:
        self.params[name] = self.names.fresh(name)

    @property
    def local_bytes(self) -> int:
        """Bytes of work-group memory."""
        return sum(array.nbytes for array in self.locals)

    def collect_args(self, passing: Passing) -> list[Arg]:
        """Return the arguments in the order of the kernel's parameters."""
        kind = ArgKind.POINTER if passing is Passing.POINTER else ArgKind.ADDRESS
        return [
            Arg(p.name, kind, p.dtype, is_written=p.name in self.plan.written)
            if isinstance(p, Buffer)
            else Arg(p.name, ArgKind.SCALAR, p.dtype)
            for p in self.plan.kernel.params
        ]

    def local_array(self, base: str, dtype: DType, count: int, lanes: int) -> str:
        """Declare work-group memory of real elements and return its name."""
        name = self.names.fresh(base)
        self.locals.append(LocalArray(name, dtype, count, lanes))
        return name

    @contextmanager
    def conditional(self, cond: str | None) -> Iterator[None]:
        """Write a block under a condition; None means always."""
        if cond is None:
            yield
            return
        with self.writer.block(self.dialect.if_header(bare(cond))):
            yield


def mask_dtype(kernel: Kernel) -> DType:
    """Return what a lane of a mask is made of: as wide as the kernel's numbers."""
    wide = {DType.FLOAT64, DType.COMPLEX128}
    every = {node.dtype for node in post_order(kernel) if isinstance(node, Buffer)}
    return DType.INT64 if every & wide else DType.INT32
