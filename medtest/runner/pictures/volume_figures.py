"""Figures of segmented volumes: slices with contours, surfaces in three dimensions ((α,σ)-robustness, figure 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.runner.folder import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Mask3 = NDArray[np.bool_]
TRUTH = "truth"
COLOURS = ("#F0E442", "#56B4E9", "#D55E00", "#CC79A7", "#009E73")
"""Okabe and Ito's colours, distinguishable for colour-blind readers; the first is for the truth."""
LEAST, MOST = "least", "greatest"
"""Beginnings of the names of volume files for the least and greatest scale of a relation, in its folder of a series."""
VOLUME_PICTURES = tuple(f"{which}-{kind}.png" for which in (LEAST, MOST) for kind in ("slices", "surfaces"))
MOST_ANSWERS = len(COLOURS) - 1
_STYLE: dict[Any, Any] = {"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "medtest", "font.size": 8}
_DPI = 150
_MOST_FACES_SIDE = 96
_FAR = 10.0
"""Distance from the true surface with the last colour, millimetres."""


def draw_volume_figures(
    folder: Path,
    stem: str,
    volume: NDArray[Any],
    truth: Mask3,
    answers: Mapping[str, Mask3],
    spacing: Sequence[float],
    *,
    window: tuple[float, float] = (-100.0, 240.0),
    title: str = "",
    suffix: str = "png",
) -> list[Path]:
    """Write ``<stem>-slices.<suffix>`` and ``<stem>-surfaces.<suffix>`` to a folder.

    Args:
        folder: Target folder, created if missing.
        stem: Beginning of the file names.
        volume: D×H×W in Hounsfield units; axes z (foot to head), y (front to back), x (right to left).
        truth: bool D×H×W.
        answers: Each method's answer by name, at most four.
        spacing: Millimetres per voxel (z, y, x).
        window: Values shown as black and white.
        title: Title line above both figures.
        suffix: ``png``, ``pdf`` or ``svg``.

    Returns:
        The two files.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with mpl.rc_context(_STYLE):
        for name, figure in (
            ("slices", slices_figure(volume, truth, answers, spacing, window=window, title=title)),
            ("surfaces", surfaces_figure(truth, answers, spacing, title=title)),
        ):
            FigureCanvasAgg(figure)
            path = folder / f"{stem}-{name}.{suffix}"
            with writing(path) as file:
                figure.savefig(file, format=suffix, dpi=_DPI, metadata=_metadata(suffix))
            paths.append(path)
    return paths


def slices_figure(
    volume: NDArray[Any],
    truth: Mask3,
    answers: Mapping[str, Mask3],
    spacing: Sequence[float],
    *,
    window: tuple[float, float] = (-100.0, 240.0),
    title: str = "",
) -> Figure:
    """Draw three axial slices, one coronal and one sagittal with the outlines of truth and answers."""
    from matplotlib.figure import Figure

    places = _places(truth)
    outlines = {TRUTH: truth, **answers}
    figure = Figure(figsize=(10.5, 2.5), layout="constrained")
    axes = figure.subplots(1, len(places))
    for axis, (plane_axis, index) in zip(axes, places, strict=True):
        _draw_plane(axis, volume, outlines, spacing, (plane_axis, index), window)
    handles = [
        axes[0].plot([], [], color=colour, linewidth=1.5, label=_label(name, truth, mask))[0]
        for (name, mask), colour in zip(outlines.items(), COLOURS, strict=False)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    if title:
        figure.suptitle(title)
    return figure


def surfaces_figure(truth: Mask3, answers: Mapping[str, Mask3], spacing: Sequence[float], *, title: str = "") -> Figure:
    """Draw surfaces of truth and answers from the front; answers are coloured by their distance to the truth.

    Surfaces are scikit-image's marching cubes (Lewiner et al. 2003) of the slightly smoothed masks.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    bodies = {TRUTH: truth, **answers}
    figure = Figure(figsize=(3.2 * len(bodies), 2.6), layout="constrained")
    norm, colours = Normalize(0, _FAR), colormaps["cividis"]
    limits = _limits(list(bodies.values()), spacing)
    for number, (name, mask) in enumerate(bodies.items()):
        axis: Any = figure.add_subplot(1, len(bodies), number + 1, projection="3d")
        axis.set_title(_label(name, truth, mask))
        _draw_surface(axis, mask, truth if name != TRUTH else None, spacing, (colours, norm))
        axis.set_box_aspect([high - low for low, high in limits], zoom=1.25)
        for (low, high), bound in zip(limits, (axis.set_xlim, axis.set_ylim, axis.set_zlim), strict=True):
            bound(low, high)
        axis.view_init(elev=12, azim=-75)
        axis.set_axis_off()
    if answers:
        figure.colorbar(
            ScalarMappable(norm, colours), ax=figure.axes, shrink=0.6, label="distance to the true surface, mm"
        )
    if title:
        figure.suptitle(title)
    return figure


def _label(name: str, truth: Mask3, mask: Mask3) -> str:
    if name == TRUTH:
        return "true outline"
    total = int(np.count_nonzero(truth)) + int(np.count_nonzero(mask))
    dice = 2 * int(np.count_nonzero(truth & mask)) / total if total else 1.0
    return f"{name}, Dice {dice:.3f}"


def _places(truth: Mask3) -> list[tuple[int, int]]:
    """Return axis and index of the drawn planes: quantiles of the organ's voxels."""
    planes = []
    for axis, shares in ((0, (0.25, 0.5, 0.8)), (1, (0.5,)), (2, (0.4,))):
        profile = np.cumsum(np.count_nonzero(truth, axis=tuple(n for n in range(3) if n != axis)))
        total = int(profile[-1])
        for share in shares:
            middle = truth.shape[axis] * share
            planes.append((axis, int(np.searchsorted(profile, share * total)) if total else int(middle)))
    return planes


def _draw_plane(
    axis: Axes,
    volume: NDArray[Any],
    outlines: Mapping[str, Mask3],
    spacing: Sequence[float],
    place: tuple[int, int],
    window: tuple[float, float],
) -> None:
    plane_axis, index = place
    plane_axes = [n for n in range(3) if n != plane_axis]
    low, high = window
    # z runs from foot to head: drawn with the head up.
    flipped = plane_axis != 0
    plane = np.take(volume, index, axis=plane_axis)
    extent = (0.0, plane.shape[1] * spacing[plane_axes[1]], plane.shape[0] * spacing[plane_axes[0]], 0.0)
    axis.imshow(
        plane[::-1] if flipped else plane, cmap="gray", vmin=low, vmax=high, extent=extent, interpolation="bilinear"
    )
    for number, (mask, colour) in enumerate(zip(outlines.values(), COLOURS, strict=False)):
        section = np.take(mask, index, axis=plane_axis)
        if section.any() and not section.all():
            y = (np.arange(section.shape[0]) + 0.5) * spacing[plane_axes[0]]
            x = (np.arange(section.shape[1]) + 0.5) * spacing[plane_axes[1]]
            contour = (section[::-1] if flipped else section).astype(float)
            width = 0.9 if number else 2.2  # correct answers coincide with the truth, whose wider line stays visible
            axis.contour(x, y, contour, levels=[0.5], colors=[colour], linewidths=width)
    axis.set_title(("axial", "coronal", "sagittal")[plane_axis])
    axis.set_axis_off()


def _draw_surface(
    axis: Any, mask: Mask3, truth: Mask3 | None, spacing: Sequence[float], colouring: tuple[Any, Any]
) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]
    from scipy import ndimage
    from skimage import measure

    step = max(1, -(-max(mask.shape) // _MOST_FACES_SIDE))
    thin = mask[::step, ::step, ::step]
    if not thin.any():
        return
    size = [s * step for s in spacing]
    soft = ndimage.gaussian_filter(np.pad(thin, 2).astype(np.float32), 0.8)
    marching: Any = measure.marching_cubes
    vertices, faces, _, _ = marching(soft, level=0.5, spacing=size)
    vertices = vertices - 2 * np.array(size)
    # Matplotlib's axes: x to the right of the picture (the patient's left), y away from the viewer (to the back), z up.
    triangles = vertices[:, ::-1][faces]
    if truth is None:
        face = "#9a9a9a"
    else:
        distance = _distance(truth[::step, ::step, ::step], size)
        coordinates = [vertices[:, n] / size[n] for n in range(3)]
        face_distance = ndimage.map_coordinates(distance, coordinates, order=1, mode="nearest")[faces].mean(axis=1)
        colours, norm = colouring
        face = colours(norm(face_distance))
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.maximum(np.sqrt((normal**2).sum(axis=1)), 1e-9)
    light = np.array([-0.4, -0.8, 0.45])
    shade = 0.55 + 0.45 * np.abs(normal @ (light / np.sqrt((light**2).sum()))) / length
    from matplotlib.colors import to_rgba_array

    rgba = np.broadcast_to(to_rgba_array(face), (len(triangles), 4)).copy()
    rgba[:, :3] *= shade[:, None]
    # Edges in the colours of their faces close the seams that antialiasing leaves between triangles.
    axis.add_collection3d(
        Poly3DCollection(triangles, facecolors=rgba, edgecolors=rgba, linewidths=0.3, rasterized=True)
    )


def _distance(truth: Mask3, size: Sequence[float]) -> NDArray[np.float32]:
    """Return each voxel's distance from the true surface in millimetres, positive on both sides."""
    from scipy import ndimage

    if not truth.any() or truth.all():
        return np.full(truth.shape, 99.0, np.float32)
    outer = ndimage.distance_transform_edt(~truth, sampling=size)
    inner = ndimage.distance_transform_edt(truth, sampling=size)
    distances: NDArray[np.float32] = (np.maximum(outer, inner) - min(size) / 2).clip(0).astype(np.float32)
    return distances


def _limits(masks: Sequence[Mask3], spacing: Sequence[float]) -> list[tuple[float, float]]:
    """Return bounds along x, y, z that enclose all masks, millimetres."""
    union = np.logical_or.reduce(list(masks))
    limits = []
    for axis in (2, 1, 0):
        filled = np.flatnonzero(union.any(axis=tuple(n for n in range(3) if n != axis)))
        first, last = (int(filled[0]), int(filled[-1]) + 1) if filled.size else (0, union.shape[axis])
        limits.append((first * spacing[axis], last * spacing[axis]))
    return limits


def _metadata(suffix: str) -> dict[str, Any]:
    """Return file metadata without dates, so that the same figure has the same bytes."""
    return {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(suffix, {})
