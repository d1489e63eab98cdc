"""Pictures of a run, with matplotlib."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._batchquad import clean
from ._errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._result import Result
    from ._table import Table

_INK, _BAND, _PALE, _BAD, _TRUTH, _LOW = "#1f4e79", "#9dc3e6", "#b0b0b0", "#c00000", "#444444", "#440154"

#: Colours of further runs.
_OTHERS = ["#c55a11", "#2e7d32", "#7b3fa0", "#8a6d00"]

#: Log-likelihoods that are so much below the best mean nothing for the integral.
_DEPTH = 20.0

#: Shares of the posterior inside the contours: one and two standard deviations of a normal distribution in the plane.
_MASSES = [0.865, 0.393]


def plot_run(result: Result, figure: Figure | None) -> Figure:
    """log Z ± one and two sd after every batch."""
    figure = figure or _figure(6.4, 3.8)
    axes: Axes = figure.subplots()
    rounds = result.rounds
    known = np.isfinite(rounds["log_z"]) & np.isfinite(rounds["log_z_sd"])
    several = "repeat" in rounds
    repeat = rounds["repeat"] if several else np.ones(known.size, dtype=int)
    ends: list[float] = []
    for k in np.unique(repeat):
        of = known & (repeat == k)
        x, y, sd = rounds["evaluations"][of], rounds["log_z"][of], rounds["log_z_sd"][of]
        ink = [_INK, *_OTHERS][(k - 1) % (1 + len(_OTHERS))]
        for width, alpha in [(2.0, 0.12)] if several else [(2.0, 0.35), (1.0, 0.6)]:
            axes.fill_between(x, y - width * sd, y + width * sd, color=ink if several else _BAND, alpha=alpha, linewidth=0)
        axes.plot(x, y, color=ink, marker="o", markersize=3.5, linewidth=1.3, label=f"repeat {k}")
        # The first rounds may be off by so much that nothing of the rest would be seen.
        late = slice(x.size // 3, None)
        ends.extend([*(y - 4 * sd)[late], *(y + 4 * sd)[late]])
    if several and result.has_evidence:
        axes.axhline(result.log_z, color=_TRUTH, linestyle="--", linewidth=1, label="all values")
        axes.legend(fontsize=8, frameon=False)
    if ends:
        low, high = min(ends), max(ends)
        margin = 0.05 * (high - low) or 0.5
        axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel("evaluations with a value" if result.failures else "evaluations")
    axes.set_ylabel("log Z ± 2 sd" if several else "log Z ± 1, 2 sd")
    axes.set_title(f"{result.status}: {result.reason}", fontsize=9, color="#404040")
    return figure


def plot_corner(
    result: Result,
    names: Sequence[str] | None,
    figure: Figure | None,
    truths: Mapping[str, float] | Sequence[float | None] | None,
    others: Mapping[str, Result] | Result | None,
    labels: Mapping[str, str] | None,
    name: str,
) -> Figure:
    """Marginals on the diagonal, pairs below it; other runs as lines over them."""
    chosen = list(names) if names is not None else result.names
    index = [result._index(one) for one in chosen]
    marks = _wrapped(result, _truths(truths, chosen))
    further = {} if others is None else dict(others) if isinstance(others, Mapping) else {"another run": others}
    grid = _grid(len(chosen), figure)
    figure = grid[0][0].figure
    ranges: dict[str, tuple[float, float]] = {}
    belief = result._known()
    for row, k in enumerate(index):
        axes = grid[row][row]
        theta, density, prior = belief.marginal(k).curve(200)
        axes.fill_between(theta, density, color=_BAND, alpha=0.6, linewidth=0)
        axes.plot(theta, density, color=_INK, linewidth=1.3)
        if prior is not None:
            axes.plot(theta, prior, color=_PALE, linewidth=1.0, linestyle="--")
        ranges[chosen[row]] = (float(theta[0]), float(theta[-1]))
        for column in range(row):
            x, y, joint, levels = belief.joint(index[column], k, 80, _MASSES)
            _contours(grid[row][column], x, y, joint.T, levels)
    for i, other in enumerate(further.values()):
        _overlay(grid, chosen, other, _OTHERS[i % len(_OTHERS)], ranges)
    for row, second in enumerate(chosen):
        for column in range(row + 1):
            _frame(grid[row][column], chosen[column], None if column == row else second, ranges, marks)
    if further:
        _legend(figure, [(name, _INK), *zip(further, itertools.cycle(_OTHERS), strict=False)])
    _label(grid, chosen, result.labels | dict(labels or {}))
    return figure


def _overlay(
    grid: list[list[Any]], chosen: Sequence[str], other: Result, colour: str, ranges: dict[str, tuple[float, float]]
) -> None:
    """Another run over a corner plot, of the parameters that it has."""
    belief = other._known()
    for row, second in enumerate(chosen):
        if second not in other.names:
            continue
        theta, density, _ = belief.marginal(other._index(second)).curve(200)
        grid[row][row].plot(theta, density, color=colour, linewidth=1.3)
        low, high = ranges[second]
        ranges[second] = (min(low, float(theta[0])), max(high, float(theta[-1])))
        for column in range(row):
            if chosen[column] in other.names:
                x, y, joint, levels = belief.joint(other._index(chosen[column]), other._index(second), 80, _MASSES)
                heights = sorted(set(level for level in levels if level > 0.0))
                if heights:
                    grid[row][column].contour(x, y, joint.T, levels=heights, colors=[colour], linewidths=1.0)


def _frame(axes: Axes, first: str, second: str | None, ranges: dict[str, tuple[float, float]], truths: dict[str, float]) -> None:
    """The range of a panel, wide enough for what is known to be true, and lines there."""

    def wide(name: str) -> tuple[float, float]:
        low, high = ranges[name]
        if name in truths:
            margin = 0.03 * (high - low)
            low, high = min(low, truths[name] - margin), max(high, truths[name] + margin)
        return low, high

    axes.set_xlim(*wide(first))
    if first in truths:
        axes.axvline(truths[first], color=_TRUTH, linewidth=1.1)
    if second is None:
        axes.set_yticks([])
        axes.set_ylim(bottom=0.0)
        return
    axes.set_ylim(*wide(second))
    if second in truths:
        axes.axhline(truths[second], color=_TRUTH, linewidth=1.1)


def _wrapped(result: Result, marks: dict[str, float]) -> dict[str, float]:
    """Angles taken round to where the posterior is shown."""
    names = list(result.names)
    taken = result._known().wrapped([marks.get(name, np.nan) for name in names])
    return {name: taken[names.index(name)] for name in marks}


def _truths(truths: Mapping[str, float] | Sequence[float | None] | None, chosen: Sequence[str]) -> dict[str, float]:
    if truths is None:
        return {}
    if isinstance(truths, Mapping):
        unknown = [name for name in truths if name not in chosen]
        if unknown:
            raise InvalidInput(f"truth of {unknown[0]!r}, expected one of the parameters shown, {', '.join(chosen)}")
        return {name: float(value) for name, value in truths.items()}
    if len(truths) != len(chosen):
        raise InvalidInput(f"truths have {len(truths)} values, expected {len(chosen)}, one for each of {', '.join(chosen)}")
    return {name: float(value) for name, value in zip(chosen, truths, strict=True) if value is not None}


def _legend(figure: Figure, entries: Sequence[tuple[str, str]]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colour) for _, colour in entries]
    figure.legend(lines, [clean(name) for name, _ in entries], loc="upper right", frameon=False, fontsize=9)


def plot_evaluations(
    result: Result, names: Sequence[str] | None, figure: Figure | None, labels: Mapping[str, str] | None
) -> Figure:
    """Points by colour of their log-likelihood; crosses where the likelihood is zero or the evaluation failed."""
    chosen = list(names) if names is not None else result.names
    for name in chosen:
        result._index(name)
    table = result.evaluations
    values = table["log_likelihood"]
    finite, failed = np.isfinite(values), table["status"] == "failed"
    zero = (table["status"] == "value") & ~finite
    # Far below the best, differences mean nothing for the integral; they would use up the colours.
    lowest, best = np.min(values[finite], initial=np.inf), np.max(values[finite], initial=-np.inf)
    floor = max(best - _DEPTH, lowest) if finite.any() else 0.0
    low = finite & (values < floor)
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
            shown = finite & ~low
            points = axes.scatter(x[shown], y[shown], c=height[shown], s=14, cmap="viridis", linewidths=0)
            # What lies lower is drawn at the floor, and looks like it.
            axes.scatter(x[low], y[low], marker="v", s=16, facecolors="none", edgecolors=_LOW, linewidths=0.8)
            if _is_logarithmic(table, first):
                axes.set_xscale("log")
            if row == column:
                axes.yaxis.tick_right()
            elif _is_logarithmic(table, second):
                axes.set_yscale("log")
    if points is not None and finite.any():
        bar = figure.colorbar(points, ax=[axes for line in grid for axes in line if axes is not None], shrink=0.6, pad=0.1)
        bar.set_label("log-likelihood")
    said = [
        f"▽ {int(low.sum())} more than {_DEPTH:g} below the best, to {lowest:.3g}" if low.any() else "",
        f"× {int(zero.sum())} of likelihood zero" if zero.any() else "",
        f"× {int(failed.sum())} failed" if failed.any() else "",
    ]
    if any(said):
        figure.suptitle("   ".join(part for part in said if part), fontsize=8, color="#404040")
    _label(grid, chosen, result.labels | dict(labels or {}))
    return figure


def _is_logarithmic(table: Table, name: str) -> bool:
    """Whether the prior spreads over orders of magnitude on both sides of its middle, as a log-uniform one does, and not only towards zero."""
    first = table[name][table["batch"] == 0]
    if first.size < 3 or np.min(table[name]) <= 0.0:
        return False
    middle = float(np.median(first))
    return bool(np.max(first) > 5.0 * middle) and bool(middle > 5.0 * np.min(first))


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
    import matplotlib
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(width, height), layout="constrained")
    if "inline" in matplotlib.get_backend().lower():
        _show_once(figure)
    return figure


def _show_once(figure: Figure) -> None:
    """Notebooks show every open figure at the end of a cell, and once more what the last line of the cell returns."""
    import matplotlib.pyplot as plt

    def show() -> None:
        if not plt.fignum_exists(figure.number):
            ipython: Any = importlib.import_module("IPython.display")
            del figure._ipython_display_  # type: ignore[attr-defined]
            ipython.display(figure)
            _show_once(figure)

    figure._ipython_display_ = show  # type: ignore[attr-defined]


def _grid(n: int, figure: Figure | None) -> list[list[Any]]:
    """The lower triangle of n × n axes."""
    size = max(3.2, 1.9 * n)
    figure = figure or _figure(size + 0.8, size)
    axes = figure.subplots(n, n, squeeze=False)
    for row in range(n):
        for column in range(row + 1, n):
            axes[row, column].remove()
    return [[axes[row, column] if column <= row else None for column in range(n)] for row in range(n)]


def _label(grid: list[list[Any]], names: Sequence[str], labels: Mapping[str, str]) -> None:
    for row, line in enumerate(grid):
        for column, axes in enumerate(line[: row + 1]):
            axes.tick_params(labelsize=7)
            if row == len(grid) - 1:
                _name(axes.set_xlabel, names[column], labels)
            else:
                axes.tick_params(labelbottom=False)
            if column == 0 and row > 0:
                _name(axes.set_ylabel, names[row], labels)
            elif column < row:
                axes.tick_params(labelleft=False)


def _name(put: Callable[..., object], name: str, labels: Mapping[str, str]) -> None:
    # Names are text, in which a dollar sign is no formula; labels may be formulas.
    if name in labels:
        put(labels[name])
    else:
        put(name, parse_math=False)
