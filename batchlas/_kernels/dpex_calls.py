"""How numba learns a type of vectors, and functions of them for numba-dpex kernels.

A function is given by what writes its instructions of LLVM and by the type of its
result. Used by `dpex_vectors` alone.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import lower_builtin, register_model, type_callable
from numba_dpex.core.descriptor import dpex_kernel_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INT = ir.IntType(32)


class Vector(types.Type):  # type: ignore[misc]
    """The type of vectors of `lanes` numbers."""

    def __init__(self, dtype: Any, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"{dtype}x{lanes}")

    @property
    def is_float(self) -> bool:
        """Whether its numbers are floating point."""
        return isinstance(self.dtype, types.Float)

    @property
    def mask(self) -> Vector:
        """The type of what comparing two such vectors gives."""
        return Vector(types.Integer.from_bitwidth(self.dtype.bitwidth), self.lanes)


@register_model(Vector)
class _VectorModel(PrimitiveModel):  # type: ignore[misc]
    """A vector is one value of LLVM."""

    def __init__(self, models: Any, kind: Vector) -> None:
        number = models.lookup(kind.dtype).get_value_type()
        super().__init__(models, kind, ir.VectorType(number, kind.lanes))


# Where numba-dpex has compiled a kernel before, it has a copy of numba's models.
dpex_kernel_target.target_context.data_model_manager.register(Vector, _VectorModel)


class Call(NamedTuple):
    """A call that is turned into instructions: by what, and of which types.

    numba, llvmlite and numba-dpex are without annotations.
    """

    context: Any
    builder: Any
    result: Any
    operands: tuple[Any, ...]

    def shape(self, of: Any) -> Any:
        """Return a type as LLVM has it."""
        return self.context.get_value_type(of)

    def number(self, value: Any, given: Any, to: Any) -> Any:
        """Return a number in another type; a bool is 0 or -1."""
        if isinstance(given, types.Boolean):
            return self.builder.sext(value, self.shape(to))
        return self.context.cast(self.builder, value, given, to)

    def shuffled(self, a: Any, b: Any, lanes: Sequence[int]) -> Any:
        """Return these lanes of two vectors, those of the second one counted on."""
        order = ir.Constant(ir.VectorType(INT, len(lanes)), list(lanes))
        return self.builder.shuffle_vector(a, b, order)

    def members(self, values: Any, operand: int) -> list[Any]:
        """Return the values of an operand that is a tuple."""
        count = range(len(self.operands[operand]))
        return [self.builder.extract_value(values, i) for i in count]


_Written = TypeVar("_Written", bound="Callable[..., Any]")


class _Typer:
    """Tells numba the type of a function's result, and how many operands it has."""

    def __init__(self, result: Callable[..., Any], write: Callable[..., Any]) -> None:
        self.result = result
        _, *operands = inspect.signature(write).parameters.values()
        self.pysig = inspect.Signature(operands)

    def __call__(self, *operands: Any) -> Any:
        return self.result(operands)


def teach(
    function: Callable[..., Any],
    result: Callable[..., Any],
    write: Callable[..., Any],
    *cases: Sequence[Any],
) -> None:
    """Teach numba a function for some cases of operands.

    `result` gives the type of its result by the types of its operands, or None, and
    `write` writes its instructions.
    """
    typer = _Typer(result, write)
    type_callable(function)(lambda _typing: typer)

    def lower(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        call = Call(context, builder, signature.return_type, signature.args)
        return write(call, *values)

    for operands in cases:
        lower_builtin(function, *operands)(lower)


def function(result: Callable[..., Any]) -> Callable[[_Written], _Written]:
    """Make a function of kernels of what writes its instructions.

    numba's own `intrinsic` would do, but each call of one makes numba-dpex register
    all its mathematics again: kernels took twice as long to compile.
    """

    def made(write: _Written) -> _Written:
        operands = [types.Any] * (len(inspect.signature(write).parameters) - 1)
        teach(write, result, write, operands)
        return write

    return made
