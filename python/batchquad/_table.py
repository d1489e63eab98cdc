"""Small tables: columns by name, to numpy, pandas, text and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._batchquad import clean
from ._text import html_table

if TYPE_CHECKING:
    import pandas

#: Rows shown of a long table, half from its beginning and half from its end.
_SHOWN = 20


class Table(Mapping[str, np.ndarray]):
    """Columns of equal length by name.

    >>> table = Table({"x": np.array([1.0, 2.0]), "status": np.array(["value", "failed"])})
    >>> table["x"]
    array([1., 2.])
    >>> table
    x  status
    1  value
    2  failed
    """

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """The number of columns, as for any mapping; ``rows`` is the number of rows."""
        return len(self._columns)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame; needs pandas."""
        import pandas

        return pandas.DataFrame(self._columns)

    def _cells(self) -> list[list[str]]:
        rows = [[_cell(column[i]) for column in self._columns.values()] for i in self._visible()]
        if self.rows > _SHOWN:
            rows.insert(_SHOWN // 2, ["…"] * len(self._columns))
        return rows

    def _visible(self) -> list[int]:
        n = self.rows
        return list(range(n)) if n <= _SHOWN else [*range(_SHOWN // 2), *range(n - _SHOWN // 2, n)]

    def __repr__(self) -> str:
        rows = [list(self._columns), *self._cells()]
        widths = [max(len(clean(row[k])) for row in rows) for k in range(len(self._columns))]
        lines = ["  ".join(clean(cell).ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(list(self._columns), self._cells())


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.6g}"
    return "" if value is None else " ".join(str(value).split())
