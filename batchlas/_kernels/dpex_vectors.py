"""Vectors of numbers in numba-dpex kernels, as OpenCL C has them.

numba knows single numbers only. Here it learns how vectors are made, their operators,
and how they are loaded, stored and transposed; each becomes one or few instructions of
LLVM, all of which SPIR-V has. As in OpenCL C a comparison gives a vector of integers,
0 or -1, and a number beside a vector stands for one of equal numbers.

Rendered kernels import this module, nobody else does: it needs numba-dpex.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core.cgutils import create_struct_proxy, get_or_insert_function

from batchlas._kernels.dpex_calls import INT, Call, Vector, function, teach

if TYPE_CHECKING:
    from collections.abc import Sequence


def kind(dtype: type[np.generic], lanes: int) -> Any:
    """Return a type of vectors, for a kernel's module to name."""
    return types.TypeRef(Vector(from_dtype(np.dtype(dtype)), lanes))


# the types of results, by those of the operands


def _same(operands: Sequence[Any]) -> Any:
    return operands[0]


def _nothing(_operands: Sequence[Any]) -> Any:
    return types.none


def _instance(operands: Sequence[Any]) -> Any:
    return operands[0].instance_type


def _element(operands: Sequence[Any]) -> Any:
    return operands[0].dtype


# making vectors


@function(_instance)
def make(call: Call, _made: Any, values: Any) -> Any:
    """Return a vector: of one number, of a tuple of them, or of vectors.

    One vector is converted, several stand one after the other.
    """
    given = call.operands[1]
    if not isinstance(given, types.BaseTuple):
        return _converted(call, values, given, call.result)
    if isinstance(given[0], Vector):
        return _joined(call, call.members(values, 1))
    vector = ir.Constant(call.shape(call.result), ir.Undefined)
    for lane, value in enumerate(call.members(values, 1)):
        number = call.number(value, given[lane], call.result.dtype)
        vector = call.builder.insert_element(vector, number, INT(lane))
    return vector


def _converted(call: Call, value: Any, given: Any, to: Vector) -> Any:
    """Return a number or a vector as a vector of another type."""
    builder, shape = call.builder, call.shape(to)
    if not isinstance(given, Vector):
        number = call.number(value, given, to.dtype)
        first = builder.insert_element(ir.Constant(shape, ir.Undefined), number, INT(0))
        return call.shuffled(first, first, [0] * to.lanes)
    if given == to:
        return value
    if given.is_float != to.is_float:
        return (builder.sitofp if to.is_float else builder.fptosi)(value, shape)
    if to.dtype.bitwidth > given.dtype.bitwidth:
        return (builder.fpext if to.is_float else builder.sext)(value, shape)
    return (builder.fptrunc if to.is_float else builder.trunc)(value, shape)


def _joined(call: Call, vectors: Sequence[Any]) -> Any:
    """Return vectors one after the other, as many as a power of two."""
    while len(vectors) > 1:
        lanes = range(2 * vectors[0].type.count)
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [call.shuffled(a, b, lanes) for a, b in pairs]
    return vectors[0]


# operators


def _vector_of(operands: Sequence[Any]) -> Any:
    """Return the type that an operation's operands have in common."""
    return next((x for x in operands if isinstance(x, Vector)), None)


def _binary(op: Any, floats: str, integers: str, compares: str = "") -> None:
    """Teach numba an operator of two vectors, by the names of its instructions."""

    def result(operands: Sequence[Any]) -> Any:
        vector = _vector_of(operands)
        return vector.mask if vector is not None and compares else vector

    def write(call: Call, x: Any, y: Any) -> Any:
        to, (of_x, of_y) = _vector_of(call.operands), call.operands
        a, b = _converted(call, x, of_x, to), _converted(call, y, of_y, to)
        instruction = getattr(call.builder, floats if to.is_float else integers)
        if not compares:
            return instruction(a, b)
        return call.builder.sext(instruction(compares, a, b), call.shape(call.result))

    beside = (Vector, types.Number), (types.Number, Vector)
    teach(op, result, write, (Vector, Vector), *beside)


def _unary(op: Any, floats: str, integers: str) -> None:
    """Teach numba an operator of one vector."""

    def write(call: Call, value: Any) -> Any:
        return getattr(call.builder, floats if call.result.is_float else integers)(
            value
        )

    teach(op, _vector_of, write, [Vector])


for _operator, _floats, _integers in (
    (operator.add, "fadd", "add"),
    (operator.sub, "fsub", "sub"),
    (operator.mul, "fmul", "mul"),
    (operator.truediv, "fdiv", "sdiv"),
    (operator.floordiv, "fdiv", "sdiv"),  # of non-negative integers
    (operator.mod, "frem", "srem"),  # likewise
    (operator.and_, "", "and_"),
    (operator.or_, "", "or_"),
):
    _binary(_operator, _floats, _integers)
for _operator, _sign in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
):
    _binary(_operator, "fcmp_ordered", "icmp_signed", _sign)
_binary(operator.ne, "fcmp_unordered", "icmp_signed", "!=")
_unary(operator.neg, "fneg", "neg")
_unary(operator.invert, "", "not_")


# functions


def _known(call: Call, name: str, *values: Any) -> Any:
    """Call a floating-point function that LLVM knows by a name."""
    shape = ir.FunctionType(values[0].type, [value.type for value in values])
    full = f"llvm.{name}.v{call.result.lanes}f{call.result.dtype.bitwidth}"
    known = get_or_insert_function(call.builder.module, shape, full)
    return call.builder.call(known, values)


@function(_same)
def sqrt(call: Call, x: Any) -> Any:
    """Return the square root."""
    return _known(call, "sqrt", x)


@function(_same)
def fabs(call: Call, x: Any) -> Any:
    """Return the absolute value."""
    return _known(call, "fabs", x)


@function(_same)
def copysign(call: Call, x: Any, y: Any) -> Any:
    """Return x with the signs of y."""
    return _known(call, "copysign", x, y)


@function(lambda operands: operands[1])
def where(call: Call, mask: Any, a: Any, b: Any) -> Any:
    """Return a's lanes where the mask is set, else b's."""
    unset = ir.Constant(mask.type, None)
    return call.builder.select(call.builder.icmp_signed("!=", mask, unset), a, b)


@function(lambda _operands: types.int64)
def any_lane(call: Call, mask: Any) -> Any:
    """Return 1 if any lane of a mask is set, else 0."""
    lanes = map(INT, range(mask.type.count))
    every = reduce(
        call.builder.or_, (call.builder.extract_element(mask, lane) for lane in lanes)
    )
    is_set = call.builder.icmp_signed("!=", every, every.type(0))
    return call.builder.zext(is_set, ir.IntType(64))


@function(_element)
def lane(call: Call, vector: Any, number: Any) -> Any:
    """Return one lane of a vector."""
    return call.builder.extract_element(vector, number)


# memory


def _address(call: Call, operand: int, array: Any, index: Any) -> Any:
    """Return where an element of an array is that is an operand of the call."""
    proxy = create_struct_proxy(call.operands[operand])
    data = proxy(call.context, call.builder, value=array).data
    return call.builder.gep(data, [index])


def _load(call: Call, place: Any, kind: Vector) -> Any:
    """Load the vector that begins at a number."""
    pointer = call.shape(kind).as_pointer(place.type.addrspace)
    return call.builder.load(call.builder.bitcast(place, pointer), align=_bytes(kind))


def _store(call: Call, place: Any, vector: Any, align: int) -> Any:
    """Store a vector from a number on; return the instruction."""
    pointer = vector.type.as_pointer(place.type.addrspace)
    return call.builder.store(vector, call.builder.bitcast(place, pointer), align=align)


def _bytes(kind: Vector) -> int:
    return int(kind.dtype.bitwidth) // 8


@function(_instance)
def load(call: Call, _loaded: Any, array: Any, index: Any) -> Any:
    """Return the vector that begins at an element of an array of numbers."""
    return _load(call, _address(call, 1, array, index), call.result)


@function(_nothing)
def store(call: Call, array: Any, index: Any, vector: Any) -> Any:
    """Store a vector from an element of an array of numbers on."""
    place = _address(call, 0, array, index)
    _store(call, place, vector, _bytes(call.operands[2]))
    return call.context.get_dummy_value()


@function(_element)
def cell(call: Call, cells: Any, index: Any) -> Any:
    """Return an element of an array of vectors."""
    return call.builder.load(_address(call, 0, cells, index))


@function(_nothing)
def set_cell(call: Call, cells: Any, index: Any, vector: Any) -> Any:
    """Set an element of an array of vectors."""
    call.builder.store(vector, _address(call, 0, cells, index))
    return call.context.get_dummy_value()


@function(_element)
def gathered(call: Call, cells: Any, at: Any) -> Any:
    """Return what each lane finds at its own subscript of an array of vectors."""
    builder, vector = call.builder, ir.Constant(call.shape(call.result), ir.Undefined)
    for number in map(INT, range(call.result.lanes)):
        index = builder.extract_element(at, number)
        found = builder.load(_address(call, 0, cells, index))
        value = builder.extract_element(found, number)
        vector = builder.insert_element(vector, value, number)
    return vector


# tiles: as many consecutive elements in each lane as there are lanes


def _columns(operands: Sequence[Any]) -> Any:
    vector = operands[0].instance_type
    return types.UniTuple(vector, vector.lanes)


@function(_columns)
def load_tile(call: Call, _loaded: Any, array: Any, index: Any, pitch: Any) -> Any:
    """Return the columns of a tile whose rows begin at an element, `pitch` apart."""
    vector = call.operands[0].instance_type
    places = _rows(call, _address(call, 1, array, index), pitch, vector.lanes)
    columns = _transposed(call, [_load(call, place, vector) for place in places])
    return call.context.make_tuple(call.builder, call.result, columns)


@function(_nothing)
def store_tile(call: Call, array: Any, index: Any, pitch: Any, columns: Any) -> Any:
    """Store tiles side by side, given all their columns."""
    place = _address(call, 0, array, index)
    _store_tile(call, place, pitch, columns, streams=False)
    return call.context.get_dummy_value()


@function(_nothing)
def stream_tile(call: Call, array: Any, index: Any, pitch: Any, columns: Any) -> Any:
    """Store tiles past the caches; their rows are aligned as vectors may be."""
    place = _address(call, 0, array, index)
    _store_tile(call, place, pitch, columns, streams=True)
    return call.context.get_dummy_value()


def _store_tile(
    call: Call, first: Any, pitch: Any, columns: Any, *, streams: bool
) -> None:
    kind, vectors = call.operands[3][0], call.members(columns, 3)
    count, size = len(vectors) // kind.lanes, _bytes(kind)
    tiles = [
        _transposed(call, vectors[tile * kind.lanes : (tile + 1) * kind.lanes])
        for tile in range(count)
    ]
    places = _rows(call, first, pitch, kind.lanes)
    for place, *parts in zip(places, *tiles, strict=True):
        whole = len(vectors) * size
        line = _store(call, place, _joined(call, parts), whole if streams else size)
        if streams:
            past_caches = call.builder.module.add_metadata([INT(1)])
            line.set_metadata("nontemporal", past_caches)


def _rows(call: Call, first: Any, pitch: Any, lanes: int) -> list[Any]:
    """Return where each lane's row begins."""
    steps = (call.builder.mul(pitch, pitch.type(lane)) for lane in range(lanes))
    return [call.builder.gep(first, [step]) for step in steps]


def _transposed(call: Call, rows: Sequence[Any]) -> Sequence[Any]:
    """Return the columns of a square tile.

    In each round, blocks off the diagonal change places: halves, then quarters.
    """
    lanes = range(len(rows))
    half = len(lanes) // 2
    while half:
        low = [len(lanes) + c - half if c & half else c for c in lanes]
        high = [len(lanes) + c if c & half else c + half for c in lanes]
        turned = list(rows)
        for i in lanes:
            if not i & half:
                pair = rows[i], rows[i + half]
                turned[i] = call.shuffled(*pair, low)
                turned[i + half] = call.shuffled(*pair, high)
        rows, half = turned, half // 2
    return rows
