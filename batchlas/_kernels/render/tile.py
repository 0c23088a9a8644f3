"""Runs of consecutive elements in every lane, printed as one transposed tile.

With the batch across vector lanes, an element of a packed matrix is a gather: one load
per lane. But as many consecutive elements as there are lanes are a square tile: each
lane's run is one vector in memory, and transposing the tile in registers gives one
vector per element. That reads and writes every cache line once, in whole vectors.

Decided here: which statements form such a run, and how a tile is transposed. The author
of a kernel decides that there is one, by writing the accesses next to each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.affine import linear
from batchlas._kernels.ir import DType, Let, Load, MemSpace, Store
from batchlas._kernels.render.base import Cell
from batchlas._kernels.render.memory import flat_index
from batchlas._kernels.render.values import Value
from batchlas._kernels.walk import fold
from batchlas._runtime.devices import CACHE_LINE_BYTES

if TYPE_CHECKING:
    from batchlas._kernels.ir import Block, Buffer, Expr, Stmt
    from batchlas._kernels.render.lower import Lowering
    from batchlas._kernels.render.values import Env, Scope

_NEAR_BYTES = 16  # shuffles within so many are the fastest that vector units have


class Tiles:
    """Finds and prints the tiles of one kernel."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.session = lowering.session
        self.lanes = lowering.plan.lanes
        # of the tile that is printed: its numbers, and how far apart its rows are
        self._real, self._pitch = DType.FLOAT64, 0

    def starts(self, block: Block, at: int, scope: Scope) -> bool:
        """Return whether the statements from `at` on are a whole tile."""
        if self.lanes == 1 or not self.session.dialect.has_tiles or scope.mask:
            return False
        if id(block[at]) in self.session.plan.guards:
            return False
        (env, *others) = scope.envs
        if others or env.vector is None or env.may_read is not None:
            return False
        if env.vector.texts != env.vector.numbers:
            return False
        return self._is_run(block, at, self._width(block[at]), env)

    def _width(self, stmt: Stmt) -> int:
        """Return how many elements fill a vector; a complex one is two numbers."""
        access = _access(stmt)
        if access is None:
            return 0
        return self.lanes // 2 if access[0].dtype.is_complex else self.lanes

    def _tiles_of(self, block: Block, at: int, scope: Scope) -> int:
        """Return how many tiles to print together.

        What streams past the caches goes there by whole cache lines if it can: with
        stores to other lines in between, a line would be written in pieces.
        """
        stmt, width = block[at], self._width(block[at])
        if not isinstance(stmt, Store) or not self._streams(stmt):
            return 1
        tiles = CACHE_LINE_BYTES // (width * stmt.buffer.dtype.itemsize)
        whole = self._is_run(block, at, tiles * width, scope.first)
        return tiles if whole and self._is_aligned(stmt, tiles * width) else 1

    def _streams(self, stmt: Store) -> bool:
        return stmt.buffer.streams and self._is_aligned(stmt, self._width(stmt))

    def _is_run(self, block: Block, at: int, count: int, env: Env) -> bool:
        """Return whether `count` statements access consecutive elements."""
        accesses = [_access(stmt) for stmt in block[at : at + count]]
        if not accesses or accesses[0] is None or env.vector is None:
            return False
        buffer, start = accesses[0]
        width = self._width(block[at])
        if len(accesses) != count or width == 0:
            return False
        if linear(start).coefficient(env.vector.axis) < width:
            return False
        for step, access in enumerate(accesses):
            if access is None or access[0] != buffer:
                return False
            gap = linear(fold(access[1] - start))
            if gap.axes or gap.others or gap.constant != step:
                return False
        return True

    def write(self, block: Block, at: int, scope: Scope) -> tuple[Scope, int]:
        """Print the tile; return the scope after it and the place of what follows."""
        end = at + self._width(block[at]) * self._tiles_of(block, at, scope)
        run = block[at:end]
        access = _access(run[0])
        assert access is not None
        self._real = access[0].dtype.real
        assert scope.first.vector is not None
        apart = linear(access[1]).coefficient(scope.first.vector.axis)
        self._pitch = 2 * apart if access[0].dtype.is_complex else apart
        if isinstance(run[0], Let):
            return self._load(run, scope), end
        self._store(run, scope)
        return scope, end

    def _load(self, run: Block, scope: Scope) -> Scope:
        """Load each lane's run as a vector and transpose."""
        env = scope.first
        columns = self._loaded(self._cells(run[0], env))
        for number, stmt in enumerate(run):
            assert isinstance(stmt, Let)
            wide = 2 if stmt.temp.dtype.is_complex else 1
            parts = tuple(columns[wide * number : wide * (number + 1)])
            env = env.with_temp(stmt.temp.id, Value(stmt.temp.dtype, parts, self.lanes))
        return scope.with_envs([env])

    def _loaded(self, cells: list[Cell]) -> list[str]:
        """Print the loads of a tile's rows; return the names of its columns."""
        dialect, session = self.session.dialect, self.session
        if not dialect.whole_tiles:
            load = dialect.load_vector
            texts = (load(cell, self._real, self.lanes) for cell in cells)
            return self._transposed([self._named("row", text) for text in texts])
        columns = [session.names.fresh("tile") for _ in cells]
        text = dialect.load_tile(cells[0], self._pitch, self._real, self.lanes)
        session.writer.line(dialect.assignment(", ".join(columns), text))
        return columns

    def _store(self, run: Block, scope: Scope) -> None:
        """Transpose the values and store each lane's run in whole vectors."""
        ex, env = self.session.expressions, scope.first
        columns: list[str] = []
        for stmt in run:
            assert isinstance(stmt, Store)
            columns += ex.widen(ex.value(stmt.value, env), self.lanes).parts
        assert isinstance(run[0], Store)
        cells, streams = self._cells(run[0], env), self._streams(run[0])
        dialect, writer = self.session.dialect, self.session.writer
        if dialect.whole_tiles:
            line = dialect.store_tile(cells[0], self._pitch, columns, streams=streams)
            writer.line(dialect.call(line))
            return
        named = [self._named("column", text) for text in columns]
        tiles = range(0, len(named), self.lanes)
        rows = [self._transposed(named[tile : tile + self.lanes]) for tile in tiles]
        lanes = self.lanes * len(tiles)
        for cell, *parts in zip(cells, *rows, strict=True):
            whole = len(parts) == 1
            text = parts[0] if whole else dialect.vector(self._real, lanes, parts)
            store = dialect.store_vector
            writer.line(store(cell, text, self._real, lanes, streams=streams))

    def _is_aligned(self, stmt: Store, count: int) -> bool:
        """Return whether a run begins at a multiple of `count`, in every lane."""
        form = linear(flat_index(stmt.buffer, stmt.index))
        factors = [factor for _, factor in form.axes.values()]
        factors += [*form.others.values(), form.constant]
        return not any(factor % count for factor in factors)

    def _cells(self, stmt: Stmt, env: Env) -> list[Cell]:
        """Return where the first number of each lane's run is."""
        access = _access(stmt)
        assert access is not None
        buffer, start = access
        name = self.session.params[buffer.name]
        texts = [
            self.session.expressions.scalar(start, env.in_lane(lane))
            for lane in range(self.lanes)
        ]
        twice = "2 * " if buffer.dtype.is_complex else ""
        return [Cell(name, f"{twice}{text}") for text in texts]

    def _transposed(self, rows: list[str]) -> list[str]:
        """Print the transposition of a square tile; return the names of its columns.

        In each round, blocks off the diagonal change places: halves, then quarters.
        Within 16 bytes two rows are interleaved instead. That comes to the same after
        the last round, and a processor has one instruction for each new row.
        """
        half = self.lanes // 2
        while half:
            turned = list(rows)
            low, high = self._picks(half)
            for i in range(self.lanes):
                if not i & half:
                    a, b = rows[i], rows[i + half]
                    turned[i] = self._mixed(a, b, low)
                    turned[i + half] = self._mixed(a, b, high)
            rows, half = turned, half // 2
        return rows

    def _picks(self, half: int) -> tuple[list[int], list[int]]:
        """Return the lanes of both new rows, those of the second old row counted on."""
        lanes = self.lanes
        near = min(_NEAR_BYTES // self._real.itemsize, lanes)
        if half < near:
            low = [c - c % near + c % near // 2 + c % 2 * lanes for c in range(lanes)]
            return low, [c + near // 2 for c in low]
        low = [lanes + c - half if c & half else c for c in range(lanes)]
        return low, [c + half for c in low]

    def _mixed(self, a: str, b: str, picks: list[int]) -> str:
        lanes = ", ".join(map(str, picks))
        text = self.session.dialect.shuffle.format(a=a, b=b, lanes=lanes)
        return self._named("tile", text)

    def _named(self, base: str, text: str) -> str:
        dialect, name = self.session.dialect, self.session.names.fresh(base)
        kind = dialect.type_of(self._real, self.lanes)
        self.session.writer.line(dialect.constant(kind, name, text))
        return name


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
