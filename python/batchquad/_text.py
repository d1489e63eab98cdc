"""Numbers and texts as people read them."""

from __future__ import annotations

import html

from ._batchquad import clean, rounded


def plus_minus(value: float | None, sd: float | None) -> str:
    """``value ± sd``, or ``none``.

    >>> plus_minus(-14.01941, 0.0123)
    '-14.019 ± 0.012'
    """
    if value is None or sd is None:
        return "none"
    return f"{rounded(value, sd)} ± {rounded(sd, sd)}"


def facts(rows: list[tuple[str, str]]) -> str:
    """Labels and what they stand for, one per line, without anything that could move a terminal's cursor."""
    width = max((len(label) for label, _ in rows), default=0)
    return "\n".join(f"{label:<{width}}  {clean(text)}".replace("\n", " ") for label, text in rows)


def html_table(header: list[str] | None, rows: list[list[str]]) -> str:
    """A table for notebooks; every cell is text, whatever it holds."""
    head = f"<thead>{_html_row('th', header)}</thead>" if header else ""
    return f"<table>{head}<tbody>{''.join(_html_row('td', row) for row in rows)}</tbody></table>"


def _html_row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(clean(cell))}</{tag}>' for cell in cells)}</tr>"
