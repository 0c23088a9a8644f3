"""From a photograph to stacks of small matrices, and from eigenvalues to a picture.

The structure tensor of a pixel sums the products of the two derivatives around it. Its
eigenvalues say what is there: both small on a flat patch, one large on an edge, both
large at a corner. That is why a photograph is a stack of 2x2 eigenproblems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from skimage import data
from skimage.feature import peak_local_max, structure_tensor

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

# One grey level of 256: what rounding may have changed in a pixel. A flat patch has
# exactly this much in both directions, so that every matrix is positive definite.
GREY_LEVEL = 1 / 255
# Pixels around the camera, for a run of a few seconds.
QUICK_CROP = np.s_[96:272, 176:352]
# The radius over which gradients are averaged, in pixels.
SMOOTHING = 1.5
MARKED_CORNERS = 80


class Stack(NamedTuple):
    """Matrices of one order, and what they are."""

    title: str
    matrices: NDArray[np.float64]


def photograph(*, quick: bool = False) -> NDArray[np.float64]:
    """Return scikit-image's photograph of a cameraman, grey values from 0 to 1.

    It is one of the pictures that travel in scikit-image's wheel: nothing is loaded
    from elsewhere. Its photographer, Lav Varshney, released it under CC0.
    """
    pixels = data.camera().astype(np.float64) / 255
    return pixels[QUICK_CROP] if quick else pixels


def stacks_of(image: NDArray[np.float64]) -> list[Stack]:
    """Return every stack that the demo computes on."""
    return [
        Stack("structure tensors of the pixels", tensors(image)),
        Stack("covariances of patches, 8 pixels wide", covariances(image, 8)),
        Stack("covariances of patches, 16 pixels wide", covariances(image, 16)),
    ]


def tensors(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the structure tensor of each pixel, (pixels, 2, 2), row before column."""
    rr, rc, cc = structure_tensor(image, sigma=SMOOTHING, mode="nearest", order="rc")
    stack = np.stack([rr, rc, rc, cc], axis=-1).reshape(-1, 2, 2)
    # The Sobel filter turns a variance v of a pixel into 12 v, and rounding to a grey
    # level g has the variance g^2 / 12.
    return stack + GREY_LEVEL**2 * np.eye(2)


def covariances(image: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return how the pixels of a row vary together, (patches, width, width).

    A patch is `width` pixels wide and four times as high; its rows are the samples.
    Patches overlap: the next one is half a width away.
    """
    step = width // 2
    windows = np.lib.stride_tricks.sliding_window_view(image, (4 * width, width))
    rows = windows[::step, ::step].reshape(-1, 4 * width, width)
    centred = rows - rows.mean(axis=1, keepdims=True)
    covariance = centred.swapaxes(1, 2) @ centred / (4 * width - 1)
    return covariance + GREY_LEVEL**2 / 12 * np.eye(width)


class Maps(NamedTuple):
    """What the eigenpairs of the structure tensors say about each pixel."""

    edges: NDArray[np.float64]
    """Strength of the change across an edge: large beside small eigenvalue."""
    corners: NDArray[np.float64]
    """The small eigenvalue, known as the corner measure of Shi and Tomasi."""
    angle: NDArray[np.float64]
    """Direction of the edge in degrees, anticlockwise from the row, 0 to 180."""


def maps_of(w: Any, v: Any, shape: tuple[int, ...]) -> Maps:
    """Read the maps off the eigenpairs; the root of an eigenvalue is a gradient."""
    small, large = np.moveaxis(np.maximum(w, 0).reshape(*shape, 2), -1, 0)
    along = v[..., :, 0].reshape(*shape, 2)  # along an edge the picture changes least
    angle = np.degrees(np.arctan2(-along[..., 0], along[..., 1])) % 180
    return Maps(np.sqrt(large) - np.sqrt(small), small, angle)


def save_picture(image: NDArray[np.float64], maps: Maps, path: Path) -> None:
    """Draw the photograph and its maps into a PNG file."""
    figure = Figure(figsize=(13.6, 11.6), dpi=110, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
    figure.suptitle(
        f"{image.size:,} pixels, {image.size:,} symmetric 2x2 matrices: "
        "edges and corners by the eigenvalues $\\lambda_1 \\geq \\lambda_2$",
        fontsize=17,
    )
    (top_left, top_right), (bottom_left, bottom_right) = figure.subplots(2, 2)
    _draw_photograph(top_left, image, maps)
    _draw_map(
        top_right,
        maps.edges,
        "gray_r",
        "Edges: the picture changes in one direction",
        "$\\sqrt{\\lambda_1} - \\sqrt{\\lambda_2}$",
    )
    _draw_map(
        bottom_left,
        maps.corners,
        "inferno",
        "Corners: it changes in every direction",
        "$\\lambda_2$",
    )
    _draw_directions(bottom_right, maps)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _draw_photograph(axes: Any, image: Any, maps: Maps) -> None:
    peaks = peak_local_max(
        maps.corners, min_distance=5, threshold_rel=0.15, num_peaks=MARKED_CORNERS
    )
    shown = axes.imshow(image, cmap="gray", vmin=0, vmax=1)
    rows, columns = peaks.T
    axes.scatter(columns, rows, s=70, facecolors="none", edgecolors="#ff9a1f")
    _finish(axes, f"The photograph, its {len(peaks)} strongest corners circled")
    _add_bar(axes, shown, "grey value")


def _draw_map(axes: Any, values: Any, colours: str, title: str, formula: str) -> None:
    """Show a map; the few values beyond the top of the scale are drawn as the top."""
    top = np.percentile(values, 99.5)
    shown = axes.imshow(values, cmap=colours, vmin=0, vmax=top)
    _finish(axes, title)
    _add_bar(axes, shown, formula, extend="max")


def _draw_directions(axes: Any, maps: Maps) -> None:
    """Show direction as hue, as bright as the edge is strong."""
    hues = mpl.colormaps["hsv"]
    brightness = np.clip(maps.edges / np.percentile(maps.edges, 99), 0, 1) ** 0.7
    axes.imshow(hues(maps.angle / 180)[..., :3] * brightness[..., None])
    _finish(axes, "Direction of the edges: the eigenvectors of $\\lambda_2$")
    scale = mpl.cm.ScalarMappable(mpl.colors.Normalize(0, 180), hues)
    bar = _add_bar(axes, scale, "")
    names = ["level", "rising", "upright", "falling", "level"]
    ticks = range(0, 181, 45)
    labels = [f"{t}° {name}" for t, name in zip(ticks, names, strict=True)]
    bar.set_ticks(list(ticks), labels=labels)


def _add_bar(axes: Any, shown: Any, label: str, **options: Any) -> Any:
    bar = axes.figure.colorbar(shown, ax=axes, shrink=0.9, pad=0.02, **options)
    bar.set_label(label, fontsize=13)
    bar.ax.tick_params(labelsize=11)
    return bar


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=15, pad=8)
    axes.set_axis_off()
