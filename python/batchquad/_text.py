"""Numbers and texts as people read them."""

from __future__ import annotations

import html
import math

from ._batchquad import clean


def rounded(value: float, sd: float) -> str:
    """A number with as many digits as ``sd`` makes meaningful.

    >>> rounded(-14.01941, 0.0123)
    '-14.019'
    """
    if not (math.isfinite(sd) and sd > 0.0 and math.isfinite(value)):
        return f"{value:g}"
    digits = 1 - math.floor(math.log10(sd))
    if digits > 12 or abs(value) >= 1e12:
        return f"{value:.6e}"
    text = f"{value:.{max(digits, 0)}f}"
    return text if text.strip("-0.") else text.lstrip("-")


def plus_minus(value: float | None, sd: float | None) -> str:
    """``value ± sd``, or ``none``."""
    if value is None or sd is None:
        return "none"
    return f"{rounded(value, sd)} ± {rounded(sd, sd)}"


def seconds_in_words(seconds: float) -> str:
    """Seconds in the unit a person would use."""
    if seconds < 0.1:
        return f"{1e3 * seconds:.0f} ms"
    if seconds < 120.0:
        return f"{seconds:.1f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


def facts(rows: list[tuple[str, str]]) -> str:
    """Labels and what they stand for, one a line, without anything that could move a terminal's cursor."""
    width = max((len(label) for label, _ in rows), default=0)
    return "\n".join(f"{label:<{width}}  {clean(text)}".replace("\n", " ") for label, text in rows)


def html_table(header: list[str] | None, rows: list[list[str]]) -> str:
    """A table for notebooks; every cell is text, whatever it holds."""
    head = f"<thead>{_html_row('th', header)}</thead>" if header else ""
    return f"<table>{head}<tbody>{''.join(_html_row('td', row) for row in rows)}</tbody></table>"


def _html_row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(clean(cell))}</{tag}>' for cell in cells)}</tr>"
