"""The texts of C-like targets; a target overrides what differs.

Decided here: how an operation, a declaration or a loop is spelled.  What is printed in
which order is decided in `lower`, how fast it is by the schedule.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from batchlas._kernels.ir import BinaryOp, DType, UnaryOp
from batchlas._kernels.render.rendered import ArgKind, Passing, RenderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batchlas._kernels.render.rendered import Arg, LocalArray
    from batchlas._kernels.render.values import Writer

C_WORDS = (
    "auto bool break case char const continue default do double else enum extern "
    "float for goto if inline int long register restrict return short signed sizeof "
    "static struct switch typedef union unsigned void volatile while true false"
)

_NO_VECTORS = "this target has no vector types"


class Cell(NamedTuple):
    """A place in an array: its name, and a subscript."""

    array: str
    at: str


class Dialect:
    """Spelling of one target; one object for each kernel that is printed."""

    opening = " {"
    closing = "}"
    reserved: str = C_WORDS
    types: ClassVar[Mapping[DType, str]]
    memory_bool = "unsigned char"
    uniform_exit = False  # threads of a group must leave a Repeat together
    unary: ClassVar[Mapping[UnaryOp, str]] = {
        UnaryOp.NOT: "(!{a})",
        UnaryOp.NEG: "(-{a})",
        UnaryOp.SQRT: "sqrt{f}({a})",
        UnaryOp.RSQRT: "rsqrt{f}({a})",
        UnaryOp.ABS: "fabs{f}({a})",
    }
    binary: ClassVar[Mapping[BinaryOp, str]] = {
        BinaryOp.ADD: "({a} + {b})",
        BinaryOp.SUB: "({a} - {b})",
        BinaryOp.MUL: "({a} * {b})",
        BinaryOp.DIV: "({a} / {b})",
        BinaryOp.FLOORDIV: "({a} / {b})",
        BinaryOp.MOD: "({a} % {b})",
        BinaryOp.COPYSIGN: "copysign{f}({a}, {b})",
        BinaryOp.LT: "({a} < {b})",
        BinaryOp.LE: "({a} <= {b})",
        BinaryOp.GT: "({a} > {b})",
        BinaryOp.GE: "({a} >= {b})",
        BinaryOp.EQ: "({a} == {b})",
        BinaryOp.NE: "({a} != {b})",
        BinaryOp.AND: "({a} && {b})",
        BinaryOp.OR: "({a} || {b})",
    }
    of_vectors: ClassVar[Mapping[UnaryOp | BinaryOp, str]] = {
        UnaryOp.NOT: "(~{a})",
        BinaryOp.AND: "({a} & {b})",
        BinaryOp.OR: "({a} | {b})",
    }
    fma = "fma{f}({a}, {b}, {c})"
    hypot = "hypot{f}({a}, {b})"
    choice = "({c} ? {a} : {b})"
    lane_of_bool = "({c} ? -1 : 0)"  # what a lane of a mask holds
    conversion = "(({type})({a}))"
    address = "&{a}"
    quotient = "({a} / {b})"  # of non-negative integers
    prefetch = ""  # asks for a cache line from {place} on, of {count} elements
    has_tiles = False  # transposed tiles of vectors, by `load_vector` and the like
    whole_tiles = False  # each loaded or stored in one call
    shuffle = ""  # a vector of the {lanes} of {a} and {b}, b's counted on from a's
    local_is_argument = False  # work-group memory comes with the launch
    local_form = ""  # declares an array of the work-group
    float_suffix = ""  # of functions that take float
    group_id: str
    local_id: str
    work_item: str  # the index among all threads, where the runtime forms the groups
    barrier: str

    def __init__(self, passing: Passing) -> None:
        self.passing = passing
        self.mask = DType.INT64  # what a lane of a vector of bools is made of
        self.constants: dict[str, str] = {}

    # values

    def type_of(self, dtype: DType, lanes: int = 1) -> str:
        """Return the type of a value or of a cell that a thread owns."""
        if lanes > 1:
            raise RenderError(_NO_VECTORS)
        return self.types[dtype]

    def literal(self, value: complex, dtype: DType) -> str:
        """Return a real literal."""
        if dtype is DType.BOOL:
            return self.condition(value=bool(value))
        if not dtype.is_inexact:
            return self.integer(int(value.real), dtype)
        if math.isfinite(value.real):
            return self.finite(float(value.real), dtype)
        return self.special(float(value.real), dtype)

    def form(self, op: UnaryOp | BinaryOp, lanes: int) -> str:
        """Return the form of an operation of single numbers or of vectors."""
        if lanes > 1 and op in self.of_vectors:
            return self.of_vectors[op]
        return self.unary[op] if isinstance(op, UnaryOp) else self.binary[op]

    def integer(self, value: int, dtype: DType) -> str:
        """Return an integer literal; the least one has no literal of its own."""
        least = -(2 ** (8 * dtype.itemsize - 1))
        if dtype.is_int and value == least:
            return f"({value + 1} - 1)"
        return str(value) if abs(value) < 2**31 else f"{value}L"

    def finite(self, value: float, dtype: DType) -> str:
        """Return a floating-point literal of exactly this dtype."""
        return f"{value!r}f" if dtype is DType.FLOAT32 else repr(value)

    def special(self, value: float, dtype: DType) -> str:
        """Return an infinity or a NaN."""
        text = "NAN" if math.isnan(value) else "INFINITY"
        sign = "-" if value < 0 else ""
        return f"(({self.types[dtype]})({sign}{text}))"

    def operation(self, form: str, dtype: DType, **operands: str) -> str:
        """Return an operation on operands of a dtype, from its form in a table."""
        suffix = self.float_suffix if dtype is DType.FLOAT32 else ""
        return form.format(f=suffix, **operands)

    def convert(self, text: str, dtype: DType, lanes: int = 1) -> str:
        """Return a number in another dtype."""
        return self.conversion.format(type=self.type_of(dtype, lanes), a=text)

    def kept_bool(self, text: str) -> str:
        """Return a condition as a number that a variable or a cell can hold."""
        return text

    def truth(self, text: str) -> str:
        """Return the condition that a cell or variable holds."""
        return f"({text} != 0)"

    def subscript(self, text: str) -> str:
        """Return a subscript; it is never negative."""
        return text

    # statements

    def declaration(self, type_text: str, name: str, text: str) -> str:
        """Return the declaration of a variable with its first value."""
        return f"{type_text} {name} = {text};"

    def constant(self, type_text: str, name: str, text: str) -> str:
        """Return the declaration of a name for a value."""
        return self.declaration(f"const {type_text}", name, text)

    def assignment(self, target: str, text: str) -> str:
        """Return an assignment."""
        return f"{target} = {text};"

    def call(self, text: str) -> str:
        """Return a call for its effect."""
        return f"{text};"

    def private_array(
        self, dtype: DType, name: str, count: int, lanes: int, *, zeroed: bool
    ) -> str:
        """Return the declaration of an array that each thread owns."""
        zero = f" = {{{self.literal(0, dtype)}}}" if zeroed else ""
        return f"{self.type_of(dtype, lanes)} {name}[{count}]{zero};"

    def local_arrays(self, arrays: Sequence[LocalArray]) -> list[str]:
        """Return the lines that declare the work-group's arrays."""
        form = self.local_form
        return [
            form.format(type=self.type_of(a.dtype, a.lanes), name=a.name, count=a.count)
            for a in arrays
        ]

    def dynamic_bytes(self, _arrays: Sequence[LocalArray]) -> int:
        """Return the work-group memory that the launch must ask for."""
        return 0

    def for_header(self, name: str, size: str) -> str:
        """Return the head of a counted loop."""
        kind = self.types[DType.INT64]
        return f"for ({kind} {name} = 0; {name} < {size}; ++{name})"

    def if_header(self, cond: str) -> str:
        """Return the head of a conditional block."""
        return f"if ({cond})"

    def while_header(self, name: str) -> str:
        """Return the head of a loop that runs while a flag is set."""
        return f"while ({name})"

    def any_thread(self, writer: Writer, go: str) -> None:
        """Write what sets `go` if it is set in any thread of the group."""
        raise NotImplementedError

    def load_vector(self, cell: Cell, dtype: DType, lanes: int) -> str:
        """Return the vector that begins at a cell of an array."""
        raise NotImplementedError

    def store_vector(
        self, cell: Cell, text: str, dtype: DType, lanes: int, *, streams: bool
    ) -> str:
        """Return the store of a vector; one that streams is aligned."""
        raise NotImplementedError

    def load_tile(self, first: Cell, pitch: int, dtype: DType, lanes: int) -> str:
        """Return the columns of a tile whose rows begin so many numbers apart."""
        raise NotImplementedError

    def store_tile(
        self, first: Cell, pitch: int, columns: Sequence[str], *, streams: bool
    ) -> str:
        """Return the store of tiles side by side, from all their columns."""
        raise NotImplementedError

    def vector_cell(self, cell: Cell) -> str:
        """Return a cell of an array of vectors."""
        return f"{cell.array}[{self.subscript(cell.at)}]"

    def set_vector_cell(self, cell: Cell, text: str) -> str:
        """Return the assignment to a cell of an array of vectors."""
        return self.assignment(self.vector_cell(cell), text)

    def vector(self, _dtype: DType, _lanes: int, _texts: Sequence[str]) -> str:
        """Return a vector: of one number, of as many as lanes, or of vectors."""
        raise RenderError(_NO_VECTORS)

    def gathered(self, name: str, dtype: DType, lanes: int, at: str) -> str:
        """Return what each lane finds at its own subscript of its private array."""
        raise NotImplementedError

    def lane(self, text: str, lane: int) -> str:
        """Return one lane of a vector."""
        raise NotImplementedError

    def chosen(self, mask: str, a: str, b: str) -> str:
        """Return the vector of a's lanes where the mask is set, else of b's."""
        raise NotImplementedError

    def any_lane(self, text: str) -> str:
        """Return whether any lane of a mask is set, as a number."""
        raise NotImplementedError

    def condition(self, *, value: bool) -> str:
        """Return a condition that always or never holds."""
        return "1" if value else "0"

    # the whole

    def parameter(self, arg: Arg, name: str) -> tuple[str, list[str]]:
        """Return a parameter's declaration and the lines it needs in the body."""
        kind = self.memory_type(arg.dtype)
        if arg.kind is ArgKind.SCALAR:
            return f"{self.types[arg.dtype]} {name}", []
        return self.pointer(kind, name, is_written=arg.is_written), []

    def memory_type(self, dtype: DType) -> str:
        """Return the type of a cell in memory; of its parts if it is complex."""
        return self.memory_bool if dtype is DType.BOOL else self.types[dtype.real]

    def pointer(self, kind: str, name: str, *, is_written: bool) -> str:
        """Return the declaration of a pointer that no other pointer aliases."""
        raise NotImplementedError

    def source(
        self,
        entry: str,
        params: Sequence[str],
        group_size: int,
        body: Sequence[str],
    ) -> str:
        """Return the whole text."""
        raise NotImplementedError
