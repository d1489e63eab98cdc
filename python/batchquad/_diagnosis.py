"""Whether to believe the number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._table import Table
from ._text import html_table


class Diagnosis:
    """Whether to believe the number: what was looked at, and what it says."""

    def __init__(self, report: dict[str, Any], findings: list[dict[str, Any]]) -> None:
        #: ``"fine"``, ``"look"`` or ``"do-not-trust"``: the worst of all findings.
        self.verdict: str = report["verdict"]
        #: The verdict in a sentence, with the findings that led to it.
        self.summary: str = report["verdict_reason"]
        keys = ("name", "level", "value", "sentence")
        kinds = {"value": float}
        #: One row for each thing that was looked at.
        self.findings = Table(
            {key: np.array([finding[key] for finding in findings], dtype=kinds.get(key, object)) for key in keys}
        )

    def __repr__(self) -> str:
        return f"{self.verdict}: {self.summary}\n\n{self.findings!r}"

    def _repr_html_(self) -> str:
        return html_table(None, [[self.verdict, self.summary]]) + self.findings._repr_html_()
