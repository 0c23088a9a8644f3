"""Pictures: time per matrix against n, and which family serves which n and batch.

matplotlib is imported here and nowhere else in the package. Colours are those of Okabe
and Ito, which colour-blind people can tell apart; batchlas is always the same blue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, NullLocator

from batchlas.bench.result import OURS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from batchlas.bench.map import Map
    from batchlas.bench.result import Result

_BLUE, _GREEN, _RED, _GREY = "#0072B2", "#009E73", "#D55E00", "#777777"
_PEERS = {
    "numpy": "#E69F00",
    "dpnp": "#CC79A7",
    "cupy": "#009E73",
    "torch": "#D55E00",
    "jax": "#56B4E9",
}
_FAMILIES = ("#56B4E9", "#009E73", "#F0E442", "#CC79A7", "#E69F00", "#0072B2")
_LIBRARY = "#D9D9D9"
_TIE = 1.03
_FAINT = {"color": "#DDDDDD", "linewidth": 0.6}


def plot_orders(results: Sequence[Result], path: Path | str) -> None:
    """Draw time per matrix against n, above how many times faster batchlas is.

    Parameters
    ----------
    results : sequence of Result
        Of one function, dtype and device, one per order.
    path : path
        Of the picture; its suffix says in which format.
    """
    results = sorted(results, key=lambda each: each.shape[-1])
    figure = Figure(figsize=(8, 7), layout="constrained")
    times, ratios = figure.subplots(2, height_ratios=(3, 2), sharex=True)
    orders = [each.shape[-1] for each in results]
    _times(times, results, orders)
    _ratios(ratios, results, orders)
    first = results[0]
    figure.suptitle(
        f"{first.function}, {first.dtype}: batchlas on {first.array} arrays, "
        f"{first.device}",
        fontsize=13,
    )
    _order_axis(ratios, orders)
    figure.savefig(path, dpi=150)


def _times(axes: Any, results: Sequence[Result], orders: Sequence[int]) -> None:
    floor = [each.per_matrix_us(each.floor_ms) for each in results]
    for side in _sides(results):
        points = _points(results, side)
        ours = side == OURS
        axes.plot(
            *zip(*points, strict=True),
            color=_colour(side),
            linewidth=3 if ours else 1.6,
            marker="o" if ours else ".",
            markersize=6,
            zorder=3 if ours else 2,
            label=side,
        )
    axes.set_yscale("log")
    low, _ = axes.get_ylim()
    low = min(low, min(floor) / 1.5)
    axes.fill_between(orders, floor, low, color="#EEEEEE", label="memory floor")
    axes.plot(orders, floor, color=_GREY, linewidth=1, linestyle="--")
    _, high = axes.get_ylim()
    axes.set_ylim(low, high * 4)  # room for the legend
    axes.set_ylabel("time per matrix, µs")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _at: f"{y:g}"))
    axes.grid(**_FAINT)
    axes.legend(frameon=False, ncols=3, loc="upper left")


def _ratios(axes: Any, results: Sequence[Result], orders: Sequence[int]) -> None:
    """Draw bars up where the best peer is slower, down where faster, grey for ties."""
    for place, result in enumerate(results):
        best = result.best_peer
        ratio = None if best is None else result.times_faster(best)
        if best is None or ratio is None:
            continue
        won = ratio >= 1
        colour = _GREEN if won else _RED
        axes.bar(
            orders[place],
            ratio - 1,
            bottom=1,
            width=0.22 * orders[place],
            color=_GREY if 1 / _TIE <= ratio <= _TIE else colour,
        )
        axes.annotate(
            f"{ratio:.2g}x\n{best.side.partition(' ')[0]}",
            (orders[place], ratio),
            xytext=(0, 3 if won else -3),
            textcoords="offset points",
            ha="center",
            va="bottom" if won else "top",
            fontsize=8,
        )
    axes.set_yscale("log", base=2)
    axes.axhline(1, color="black", linewidth=1)
    low, high = axes.get_ylim()
    low, high = min(low, 0.5) / 2.2, max(high, 2) * 2.2  # room for the numbers
    axes.axhspan(1, high, color=_GREEN, alpha=0.06, linewidth=0)
    axes.axhspan(low, 1, color=_RED, alpha=0.06, linewidth=0)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_formatter(FuncFormatter(_ratio_text))
    axes.set_ylabel("the best peer's time\nin units of ours")
    for height, word in ((0.96, "batchlas is faster"), (0.04, "slower")):
        axes.text(
            0.99,
            height,
            word,
            transform=axes.transAxes,
            ha="right",
            va="top" if height > 0.5 else "bottom",
            color=_GREEN if height > 0.5 else _RED,
        )
    axes.grid(axis="y", **_FAINT)
    axes.set_axisbelow(True)


def _ratio_text(ratio: float, _place: int) -> str:
    return f"{ratio:g}x" if ratio >= 1 else f"1/{1 / ratio:g}"


def _order_axis(axes: Any, orders: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(orders, [str(each) for each in orders])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("matrix order n")


def _sides(results: Iterable[Result]) -> list[str]:
    """Return the sides with a time anywhere, ours first."""
    names = (row.side for each in results for row in each.rows if row.ms is not None)
    return list(dict.fromkeys(names))


def _points(results: Iterable[Result], side: str) -> list[tuple[int, float]]:
    return [
        (each.shape[-1], each.per_matrix_us(row.ms))
        for each in results
        for row in each.rows
        if row.side == side and row.ms is not None
    ]


def _colour(side: str) -> str:
    return _BLUE if side == OURS else _PEERS[side.partition(" ")[0]]


def plot_map(chosen: Map, path: Path | str) -> None:
    """Draw which family serves which order and batch.

    A cell's number says how many times faster the choice was measured to be than the
    library's routine, where a row of the tables has both.

    Parameters
    ----------
    chosen : Map
    path : path
        Of the picture.
    """
    rows, columns = len(chosen.batches), len(chosen.orders)
    size = (2.4 + 0.52 * columns, 1.8 + 0.42 * rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    colours = _family_colours(chosen)
    for (n, batch), cell in chosen.cells.items():
        x, y = chosen.orders.index(n), chosen.batches.index(batch)
        alpha = 1.0 if cell.is_measured else 0.35
        axes.add_patch(_square(x, y, colours[cell.choice], alpha))
        if cell.gain is not None and cell.is_measured:
            axes.text(x, y, f"{cell.gain:.2g}", ha="center", va="center", fontsize=7.5)
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(-0.5, rows - 0.5)
    axes.set_xticks(range(columns), [str(each) for each in chosen.orders])
    axes.set_yticks(range(rows), [f"{each:,}" for each in chosen.batches])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("matrix order n")
    axes.set_ylabel("matrices in the stack")
    axes.set_title(
        f"{chosen.title}: what runs\n"
        "the number is times faster than the library alone; "
        "pale: not measured, as the nearest shape that was",
        fontsize=11,
    )
    axes.legend(
        handles=[Patch(color=colours[each], label=each) for each in chosen.choices],
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
    )
    figure.savefig(path, dpi=150)


def _square(x: int, y: int, colour: str, alpha: float) -> Any:
    corner, size = (x - 0.48, y - 0.46), (0.96, 0.92)
    return Rectangle(corner, *size, color=colour, linewidth=0, alpha=alpha)


def _family_colours(chosen: Map) -> dict[str, str]:
    """Return a colour per choice: grey for the library's, the others' by name."""
    native = [each for each in chosen.choices if each not in chosen.library]
    colours = {
        each: _FAMILIES[place % len(_FAMILIES)] for place, each in enumerate(native)
    }
    greys = (_LIBRARY, "#BDBDBD", "#A0A0A0")
    library = [each for each in chosen.choices if each in chosen.library]
    return colours | dict(zip(library, greys, strict=False))
