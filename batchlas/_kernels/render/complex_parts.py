"""Complex arithmetic on pairs of real values, in real operations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.ir import BinaryOp, DType, UnaryOp
from batchlas._kernels.render.rendered import RenderError
from batchlas._kernels.render.values import Value

if TYPE_CHECKING:
    from batchlas._kernels.render.operations import Operations


class ComplexParts:
    """Operations of complex values; results that cost something get a name."""

    def __init__(self, operations: Operations) -> None:
        self.real = operations

    def unary(self, op: UnaryOp, x: Value) -> Value:
        """Return an operation of one complex value."""
        re, im = split(x)
        negative = self.real.unary
        if op is UnaryOp.NEG:
            return self._join(x.dtype, negative(op, re), negative(op, im))
        if op is UnaryOp.CONJ:
            return self._join(x.dtype, re, negative(UnaryOp.NEG, im))
        if op is UnaryOp.REAL:
            return re
        if op is UnaryOp.IMAG:
            return im
        if op is UnaryOp.ABS:
            return self._modulus(re, im)
        if op is UnaryOp.ISNAN:
            both = (self.real.unary(op, re), self.real.unary(op, im))
            return self.real.operate(BinaryOp.OR, *both)
        msg = f"{op.value} of a complex value: write it in real and imaginary parts"
        raise RenderError(msg)

    def _modulus(self, re: Value, im: Value) -> Value:
        """Return the modulus, by scaling where the target has no function for it."""
        dialect, ex = self.real.dialect, self.real
        if dialect.hypot:
            text = dialect.operation(dialect.hypot, re.dtype, a=re.text, b=im.text)
            return Value(re.dtype, (text,), re.lanes)
        x, y = (ex.declared(ex.unary(UnaryOp.ABS, part), "size") for part in (re, im))
        is_im = ex.declared(ex.operate(BinaryOp.LT, x, y), "larger")
        big = ex.declared(ex.choose(is_im, y, x), "big")
        half = ex.operate(_MUL, big, ex.literal(0.5, big.dtype))
        plain = ex.operate(BinaryOp.EQ, half, big)  # zero or infinite
        one = ex.literal(1.0, big.dtype)
        divisor = ex.choose(plain, one, big)
        ratio = ex.declared(ex.operate(_DIV, ex.choose(is_im, x, y), divisor), "ratio")
        square = ex.operate(BinaryOp.ADD, one, ex.operate(_MUL, ratio, ratio))
        scaled = ex.operate(_MUL, big, ex.unary(UnaryOp.SQRT, square))
        return ex.choose(plain, big, scaled)

    def binary(self, op: BinaryOp, a: Value, b: Value) -> Value:
        """Return an operation of two complex values."""
        if op in {BinaryOp.ADD, BinaryOp.SUB}:
            (ar, ai), (br, bi) = split(a), split(b)
            do = self.real.operate
            return self._join(a.dtype, do(op, ar, br), do(op, ai, bi))
        a, b = self.real.named(a), self.real.named(b)
        if op is BinaryOp.MUL:
            return self._product(a, b)
        if op is BinaryOp.DIV:
            return self._quotient(a, b)
        (ar, ai), (br, bi) = split(a), split(b)
        same = op is BinaryOp.EQ
        joined = BinaryOp.AND if same else BinaryOp.OR
        do = self.real.operate
        return do(joined, do(op, ar, br), do(op, ai, bi))

    def _product(self, a: Value, b: Value) -> Value:
        (ar, ai), (br, bi) = split(a), split(b)
        do = self.real.operate
        re = do(BinaryOp.SUB, do(_MUL, ar, br), do(_MUL, ai, bi))
        im = do(BinaryOp.ADD, do(_MUL, ar, bi), do(_MUL, ai, br))
        return self.real.declared(self._join(a.dtype, re, im), "z")

    def _quotient(self, a: Value, b: Value) -> Value:
        """Return a/b; scaling by the larger part of b keeps its square finite."""
        (ar, ai), (br, bi) = split(a), split(b)
        do, name = self.real.operate, self.real.declared
        absolute = self.real.unary
        big = self.real.extreme(
            BinaryOp.MAX, absolute(UnaryOp.ABS, br), absolute(UnaryOp.ABS, bi)
        )
        big = name(big, "big")
        cr, ci = name(do(_DIV, br, big), "c"), name(do(_DIV, bi, big), "c")
        norm = name(do(BinaryOp.ADD, do(_MUL, br, cr), do(_MUL, bi, ci)), "norm")
        re = do(BinaryOp.ADD, do(_MUL, ar, cr), do(_MUL, ai, ci))
        im = do(BinaryOp.SUB, do(_MUL, ai, cr), do(_MUL, ar, ci))
        parts = self._join(a.dtype, do(_DIV, re, norm), do(_DIV, im, norm))
        return name(parts, "z")

    def _join(self, dtype: DType, re: Value, im: Value) -> Value:
        lanes = max(re.lanes, im.lanes)
        re, im = self.real.widen(re, lanes), self.real.widen(im, lanes)
        return Value(dtype, (re.text, im.text), lanes)


def split(x: Value) -> tuple[Value, Value]:
    """Return the real and the imaginary part."""
    real = x.dtype.real
    re, im = x.parts
    return Value(real, (re,), x.lanes), Value(real, (im,), x.lanes)


_MUL, _DIV = BinaryOp.MUL, BinaryOp.DIV
