"""Runs of consecutive elements in every lane, printed as transposed tiles.

With the batch across vector lanes, an element of a packed matrix is a gather: one load
per lane. But a run of consecutive elements is a vector in memory, one for each lane.
Lanes are taken in groups as large as the run: a group's vectors are a square tile,
transposed in registers, and side by side the groups' tiles are one vector per element.
That reads and writes every cache line once, in whole vectors.

Decided here: which statements form such a run, and how a tile is transposed. The author
of a kernel decides that there is one, by writing the accesses next to each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.affine import linear
from batchlas._kernels.ir import Let, Load, MemSpace, Store
from batchlas._kernels.render.memory import flat_index
from batchlas._kernels.render.values import Value
from batchlas._kernels.walk import fold

if TYPE_CHECKING:
    from batchlas._kernels.ir import Block, Buffer, Expr, Stmt
    from batchlas._kernels.render.lower import Lowering
    from batchlas._kernels.render.values import Env, Scope


class Tiles:
    """Finds and prints the tiles of one kernel."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.session = lowering.session
        self.lanes = lowering.plan.lanes
        self._width = 0  # numbers in a run, and lanes in a group
        self._kind = ""  # the type of a vector of so many numbers
        self._whole = ""  # the type of a vector of all lanes

    def length(self, block: Block, at: int, scope: Scope) -> int:
        """Return how many statements from `at` on are a run; 0 for none."""
        if self.lanes == 1 or not self.session.dialect.has_tiles or scope.mask:
            return 0
        (env, *others) = scope.envs
        if others or env.vector is None or env.may_read is not None:
            return 0
        if env.vector.texts != env.vector.numbers:
            return 0
        first = _access(block[at])
        if first is None or id(block[at]) in self.session.plan.guards:
            return 0
        numbers = self.lanes
        while numbers > 1:
            length = numbers // _numbers(first[0])
            if length and self._is_run(block[at : at + length], length, env):
                return length
            numbers //= 2
        return 0

    def _is_run(self, run: Block, length: int, env: Env) -> bool:
        """Return whether these access consecutive elements, far apart in the lanes."""
        accesses = [_access(stmt) for stmt in run]
        first = accesses[0]
        if len(accesses) != length or first is None or env.vector is None:
            return False
        buffer, start = first
        if linear(start).coefficient(env.vector.axis) < length:
            return False
        for step, access in enumerate(accesses):
            if (
                access is None
                or access[0] != buffer
                or type(run[step]) is not type(run[0])
            ):
                return False
            gap = linear(fold(access[1] - start))
            if gap.axes or gap.others or gap.constant != step:
                return False
        return True

    def write(self, run: Block, scope: Scope) -> Scope:
        """Print a run; return the scope after it."""
        access = _access(run[0])
        assert access is not None
        real = access[0].dtype.real
        self._width = len(run) * _numbers(access[0])
        self._kind = self.session.dialect.type_of(real, self._width)
        self._whole = self.session.dialect.type_of(real, self.lanes)
        if isinstance(run[0], Let):
            return self._load(run, scope)
        self._store(run, scope)
        return scope

    def _load(self, run: Block, scope: Scope) -> Scope:
        """Load each lane's run as a vector and transpose."""
        env = scope.first
        places = self._places(run[0], env)
        tiles = []
        for group in self._groups():
            loads = [
                self.session.dialect.load_vector(places[lane], self._width)
                for lane in group
            ]
            tiles.append(self._transposed([self._named("row", x) for x in loads]))
        columns = [self._joined(parts) for parts in zip(*tiles, strict=True)]
        for number, stmt in enumerate(run):
            assert isinstance(stmt, Let)
            wide = 2 if stmt.temp.dtype.is_complex else 1
            parts = tuple(columns[wide * number : wide * (number + 1)])
            env = env.with_temp(stmt.temp.id, Value(stmt.temp.dtype, parts, self.lanes))
        return scope.with_envs([env])

    def _store(self, run: Block, scope: Scope) -> None:
        """Transpose the values and store each lane's run as a vector."""
        ex, env = self.session.expressions, scope.first
        columns = []
        for stmt in run:
            assert isinstance(stmt, Store)
            value = ex.widen(ex.value(stmt.value, env), self.lanes)
            columns += [self._named("column", x, self._whole) for x in value.parts]
        assert isinstance(run[0], Store)
        streams = run[0].buffer.streams and self._is_aligned(run[0])
        places = self._places(run[0], env)
        for group in self._groups():
            rows = self._transposed([self._part(name, group) for name in columns])
            for lane, row in zip(group, rows, strict=True):
                text = self.session.dialect.store_vector(
                    places[lane], row, self._kind, streams=streams
                )
                self.session.writer.line(text)

    def _is_aligned(self, stmt: Store) -> bool:
        """Return whether a run begins at a multiple of its length, in every lane."""
        width = self._width // _numbers(stmt.buffer)
        form = linear(flat_index(stmt.buffer, stmt.index))
        factors = [factor for _, factor in form.axes.values()]
        return not form.others and not any(f % width for f in (*factors, form.constant))

    def _groups(self) -> list[range]:
        """Return the lanes, in groups of a run's length."""
        return [
            range(first, first + self._width)
            for first in range(0, self.lanes, self._width)
        ]

    def _joined(self, parts: tuple[str, ...]) -> str:
        """Return vectors of some lanes each as one of all lanes."""
        if len(parts) == 1:
            return parts[0]
        text = f"({self._whole})({', '.join(parts)})"
        return self._named("whole", text, self._whole)

    def _part(self, name: str, group: range) -> str:
        """Return the lanes of a group out of all."""
        if len(group) == self.lanes:
            return name
        return self._named("part", f"{name}.s{''.join(f'{x:x}' for x in group)}")

    def _places(self, stmt: Stmt, env: Env) -> list[str]:
        """Return the text of the first number of each lane's run."""
        access = _access(stmt)
        assert access is not None
        buffer, start = access
        name = self.session.params[buffer.name]
        texts = [
            self.session.expressions.scalar(start, env.in_lane(lane))
            for lane in range(self.lanes)
        ]
        twice = "2 * " if buffer.dtype.is_complex else ""
        return [f"{name}[{twice}{text}]" for text in texts]

    def _transposed(self, rows: list[str]) -> list[str]:
        """Print the transposition of a square tile; return the names of its columns.

        In each round, blocks off the diagonal change places: halves, then quarters.
        """
        half, width = self._width // 2, range(self._width)
        while half:
            turned = list(rows)
            for i in width:
                if not i & half:
                    a, b = rows[i], rows[i + half]
                    low = [(b, c - half) if c & half else (a, c) for c in width]
                    high = [(b, c) if c & half else (a, c + half) for c in width]
                    turned[i] = self._mixed(low)
                    turned[i + half] = self._mixed(high)
            rows, half = turned, half // 2
        return rows

    def _mixed(self, picks: list[tuple[str, int]]) -> str:
        texts = ", ".join(f"{name}.s{lane:x}" for name, lane in picks)
        return self._named("tile", f"({self._kind})({texts})")

    def _named(self, base: str, text: str, kind: str = "") -> str:
        name = self.session.names.fresh(base)
        line = self.session.dialect.constant(kind or self._kind, name, text)
        self.session.writer.line(line)
        return name


def _numbers(buffer: Buffer) -> int:
    """Return how many real numbers an element is."""
    return 2 if buffer.dtype.is_complex else 1


def _access(stmt: Stmt) -> tuple[Buffer, Expr] | None:
    """Return the buffer and flat index of a plain load or store, None for others."""
    if isinstance(stmt, Let):
        if not isinstance(stmt.value, Load):
            return None
        node: Load | Store = stmt.value
    elif isinstance(stmt, Store):
        node = stmt
    else:
        return None
    if node.buffer.space is not MemSpace.GLOBAL or node.gate is not None:
        return None
    return node.buffer, flat_index(node.buffer, node.index)
