"""Pictures of a run, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._result import Result

_INK, _BAND, _PALE, _BAD = "#1f4e79", "#9dc3e6", "#b0b0b0", "#c00000"

#: Shares of the posterior inside the contours: one and two standard deviations of a normal distribution in the plane.
_MASSES = [0.865, 0.393]


def plot_run(result: Result, figure: Figure | None) -> Figure:
    """log Z ± one and two sd after every batch."""
    figure = figure or _figure(6.4, 3.8)
    axes: Axes = figure.subplots()
    rounds = result.rounds
    known = np.isfinite(rounds["log_z"]) & np.isfinite(rounds["log_z_sd"])
    x, y, sd = rounds["evaluations"][known], rounds["log_z"][known], rounds["log_z_sd"][known]
    for width, alpha in [(2.0, 0.35), (1.0, 0.6)]:
        axes.fill_between(x, y - width * sd, y + width * sd, color=_BAND, alpha=alpha, linewidth=0)
    axes.plot(x, y, color=_INK, marker="o", markersize=3.5, linewidth=1.3)
    if x.size:
        # The first rounds may be off by so much that nothing of the rest would be seen.
        late = slice(x.size // 3, None)
        low, high = np.min((y - 4 * sd)[late]), np.max((y + 4 * sd)[late])
        margin = 0.05 * (high - low) or 0.5
        axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel("evaluations")
    axes.set_ylabel("log Z ± 1, 2 sd")
    axes.set_title(f"{result.status}: {result.reason}", fontsize=9, color="#404040")
    return figure


def plot_corner(result: Result, names: Sequence[str] | None, figure: Figure | None) -> Figure:
    """Marginals on the diagonal, pairs below it."""
    chosen = list(names) if names is not None else result.names
    belief, index = result._known(), [result._index(name) for name in chosen]
    grid = _grid(len(chosen), figure)
    figure = grid[0][0].figure
    for row, k in enumerate(index):
        axes = grid[row][row]
        theta, density, prior = belief.marginal(k).curve(200)
        axes.fill_between(theta, density, color=_BAND, alpha=0.6, linewidth=0)
        axes.plot(theta, density, color=_INK, linewidth=1.3)
        if prior is not None:
            axes.plot(theta, prior, color=_PALE, linewidth=1.0, linestyle="--")
        axes.set_yticks([])
        axes.set_ylim(bottom=0.0)
        axes.set_xlim(theta[0], theta[-1])
        for column in range(row):
            axes = grid[row][column]
            x, y, joint, levels = belief.joint(index[column], k, 80, _MASSES)
            _contours(axes, x, y, joint.T, levels)
    _label(grid, chosen)
    return figure


def plot_evaluations(result: Result, names: Sequence[str] | None, figure: Figure | None) -> Figure:
    """Points by colour of their log-likelihood; crosses where the likelihood is zero or the evaluation failed."""
    chosen = list(names) if names is not None else result.names
    for name in chosen:
        result._index(name)
    table = result.evaluations
    values = table["log_likelihood"]
    finite, failed = np.isfinite(values), table["status"] == "failed"
    zero = (table["status"] == "value") & ~finite
    # Far below the best, differences mean nothing for the integral; they would use up the colours.
    floor = max(np.max(values[finite], initial=-np.inf) - 20.0, np.min(values[finite], initial=np.inf)) if finite.any() else 0.0
    height = np.where(finite, np.maximum(values, floor), floor)
    grid = _grid(len(chosen), figure)
    figure = grid[0][0].figure
    points: Any = None
    for row, second in enumerate(chosen):
        for column in range(row + 1):
            axes, first = grid[row][column], chosen[column]
            x = table[first]
            y = height if row == column else table[second]
            for mask, colour in [(zero, _PALE), (failed, _BAD)]:
                axes.scatter(x[mask], y[mask], marker="x", s=18, color=colour, linewidths=1)
            points = axes.scatter(x[finite], y[finite], c=height[finite], s=14, cmap="viridis", linewidths=0)
            if row == column:
                axes.yaxis.tick_right()
    if points is not None and finite.any():
        bar = figure.colorbar(points, ax=[axes for line in grid for axes in line if axes is not None], shrink=0.6, pad=0.1)
        bar.set_label("log-likelihood")
    _label(grid, chosen)
    return figure


def _contours(axes: Axes, x: np.ndarray, y: np.ndarray, density: np.ndarray, levels: list[float]) -> None:
    heights = sorted(set(level for level in levels if level > 0.0))
    if heights:
        top = max(float(density.max()), heights[-1] * (1 + 1e-9)) * (1 + 1e-9)
        colours = ["#cfe2f3", "#6fa8dc"][-len(heights) :]
        axes.contourf(x, y, density, levels=[*heights, top], colors=colours)
        axes.contour(x, y, density, levels=heights, colors=[_INK], linewidths=0.8)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])


def _figure(width: float, height: float) -> Figure:
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


def _grid(n: int, figure: Figure | None) -> list[list[Any]]:
    """The lower triangle of n × n axes."""
    size = max(3.2, 1.9 * n)
    figure = figure or _figure(size + 0.8, size)
    axes = figure.subplots(n, n, squeeze=False)
    for row in range(n):
        for column in range(row + 1, n):
            axes[row, column].remove()
    return [[axes[row, column] if column <= row else None for column in range(n)] for row in range(n)]


def _label(grid: list[list[Any]], names: Sequence[str]) -> None:
    for row, line in enumerate(grid):
        for column, axes in enumerate(line[: row + 1]):
            axes.tick_params(labelsize=7)
            # Names are text: a dollar sign is no formula.
            if row == len(grid) - 1:
                axes.set_xlabel(names[column], parse_math=False)
            else:
                axes.tick_params(labelbottom=False)
            if column == 0 and row > 0:
                axes.set_ylabel(names[row], parse_math=False)
            elif column < row:
                axes.tick_params(labelleft=False)
