"""Expressions as text: scalars, vectors of lanes, and complex numbers as two parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.ir import (
    AddressOf,
    Axis,
    Binary,
    BinaryOp,
    Cast,
    Const,
    DType,
    Expr,
    Fma,
    Load,
    OpaqueValue,
    Reduce,
    ScalarArg,
    Select,
    Temp,
    Unary,
)
from batchlas._kernels.render.operations import Operations
from batchlas._kernels.render.rendered import RenderError
from batchlas._kernels.render.values import Env, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._kernels.render.memory import Memory
    from batchlas._kernels.render.session import Session


class Expressions(Operations):
    """Prints values; what a value needs first is written as lines before it."""

    def __init__(self, session: Session, memory: Memory) -> None:
        super().__init__(session)
        self.memory = memory
        memory.expressions = self
        self._printers: dict[type, Callable[..., Value]] = {
            Const: self._const,
            ScalarArg: self._scalar,
            Axis: self._axis,
            Temp: lambda node, env: env.temps[node.id],
            Reduce: lambda node, env: env.sums[id(node)],
            Load: memory.load,
            Unary: self._unary,
            Binary: self._binary,
            Select: self._select,
            Fma: self._fma,
            Cast: self._cast,
            OpaqueValue: self._opaque,
            AddressOf: memory.address,
        }

    def value(self, expr: Expr, env: Env) -> Value:
        """Return the value of an expression in one copy of the code."""
        return self._printers[type(expr)](expr, env)

    def scalar(self, expr: Expr, env: Env) -> str:
        """Return the text of a value that must be the same in all lanes."""
        value = self.value(expr, env)
        if value.lanes > 1:
            msg = f"lanes differ in {expr!r}, which must be one number"
            raise RenderError(msg)
        return value.text

    # leaves

    def _const(self, node: Const, _env: Env) -> Value:
        literal = self.dialect.literal
        real = node.dtype.real
        if node.dtype.is_complex:
            number = complex(node.value)
            parts = (literal(number.real, real), literal(number.imag, real))
            return Value(node.dtype, parts)
        return Value(node.dtype, (literal(node.value, real),))

    def _scalar(self, node: ScalarArg, _env: Env) -> Value:
        name = self.session.params[node.name]
        if node.dtype is DType.BOOL:
            name = self.dialect.truth(name)
        return Value(node.dtype, (name,))

    def _axis(self, node: Axis, env: Env) -> Value:
        vector = env.vector
        if node.id in env.axes:
            return Value(node.dtype, (env.axes[node.id],))
        if vector is None or vector.axis != node.id:
            msg = f"axis {node.name} is read outside its loop"
            raise RenderError(msg)
        lanes = len(vector.texts)
        text = self.dialect.vector(node.dtype, lanes, vector.texts)
        return Value(node.dtype, (text,), lanes)

    # nodes

    def _unary(self, node: Unary, env: Env) -> Value:
        x = self.value(node.x, env)
        if x.dtype.is_complex:
            return self.session.complex.unary(node.op, x)
        return self.unary(node.op, x)

    def _binary(self, node: Binary, env: Env) -> Value:
        a, b = self.value(node.a, env), self.value(node.b, env)
        if node.op is BinaryOp.COMPLEX:
            lanes = max(a.lanes, b.lanes)
            a, b = self.widen(a, lanes), self.widen(b, lanes)
            return Value(node.dtype, (a.text, b.text), lanes)
        if a.dtype.is_complex:
            return self.session.complex.binary(node.op, a, b)
        if node.op in {BinaryOp.MIN, BinaryOp.MAX}:
            return self.extreme(node.op, a, b)
        return self.operate(node.op, a, b)

    def _select(self, node: Select, env: Env) -> Value:
        cond = self.value(node.cond, env)
        return self.choose(cond, self.value(node.a, env), self.value(node.b, env))

    def _fma(self, node: Fma, env: Env) -> Value:
        values = [self.value(x, env) for x in (node.a, node.b, node.c)]
        if node.dtype.is_complex:
            x, y, z = values
            product = self.session.complex.binary(BinaryOp.MUL, x, y)
            return self.session.complex.binary(BinaryOp.ADD, product, z)
        lanes = max(v.lanes for v in values)
        a, b, c = (self.widen(v, lanes).text for v in values)
        text = self.dialect.operation(self.dialect.fma, node.dtype, a=a, b=b, c=c)
        return Value(node.dtype, (text,), lanes)

    def _cast(self, node: Cast, env: Env) -> Value:
        return self.cast(self.value(node.x, env), node.dtype)

    def _opaque(self, node: OpaqueValue, env: Env) -> Value:
        if node.dtype.is_complex:
            msg = f"{node.fn}: an opaque function has no complex value"
            raise RenderError(msg)
        args = ", ".join(self.scalar(arg, env) for arg in node.args)
        return Value(node.dtype, (f"{node.fn}({args})",))


NOWHERE = Env({})
