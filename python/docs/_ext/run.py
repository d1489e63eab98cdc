"""The directive ``run``: Python that is executed while the page is built, shown with what it prints and draws.

All blocks of a page share their names, in a working directory of their own. A block that raises is an error of the build, so the pages
cannot say what the package does not do. With ``:hidden:`` a block is executed and not shown, with ``:outcome:`` only
what it prints and draws is. ``:files:`` names files, relative to the folder
of the documentation, that lie in the working directory and can be imported from then on. ``:caption:`` stands above the block.
"""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import shutil
import sys
import tempfile
import traceback
from typing import Any, ClassVar

import matplotlib
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.directives.code import container_wrapper
from sphinx.util.docutils import SphinxDirective

matplotlib.use("Agg")

#: Where pictures are kept while the site is built, in the folder of the sources.
_PICTURES = "_pictures"

_pages: dict[str, tuple[dict[str, Any], tempfile.TemporaryDirectory[str]]] = {}


class Run(SphinxDirective):
    """One block."""

    has_content = True
    option_spec: ClassVar = {
        "hidden": directives.flag,
        "outcome": directives.flag,
        "files": directives.unchanged_required,
        "caption": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        import matplotlib.pyplot as plt

        page = self.env.docname
        if page not in _pages:
            _pages[page] = {"__name__": "__main__"}, tempfile.TemporaryDirectory()
        names, folder = _pages[page]
        for file in self.options.get("files", "").split():
            path = pathlib.Path(self.env.srcdir) / file
            self.env.note_dependency(str(path))
            shutil.copy(path, folder.name)
        code = "\n".join(self.content)
        printed, before = io.StringIO(), os.getcwd()
        os.chdir(folder.name)
        sys.path.insert(0, folder.name)
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(code, f"{page}, line {self.lineno}", "exec"), names)
        except Exception:
            raise self.error(f"a block of this page failed:\n{traceback.format_exc()}") from None
        finally:
            sys.path.remove(folder.name)
            os.chdir(before)
        pictures = [self._picture(plt.figure(number)) for number in plt.get_fignums()]
        plt.close("all")
        if "hidden" in self.options:
            return []
        block = nodes.literal_block(code, code, language="python")
        shown: list[nodes.Node] = []
        if "outcome" not in self.options:
            shown.append(container_wrapper(self, block, self.options["caption"]) if "caption" in self.options else block)
        if printed.getvalue():
            text = printed.getvalue().rstrip("\n")
            shown.append(nodes.literal_block(text, text, language="none", classes=["printed"]))
        return shown + pictures

    def _picture(self, figure: Any) -> nodes.image:
        folder = pathlib.Path(self.env.srcdir) / _PICTURES
        folder.mkdir(exist_ok=True)
        name = f"{self.env.docname.replace('/', '-')}-{self.env.new_serialno('picture')}.png"
        figure.savefig(folder / name, dpi=144)
        width = f"{figure.get_figwidth() * 96:.0f}px"
        return nodes.image(uri=f"/{_PICTURES}/{name}", alt="a picture of the run above", width=width)


def _forget(app: Sphinx, env: Any, docname: str) -> None:
    if docname in _pages:
        _pages.pop(docname)[1].cleanup()


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("run", Run)
    app.connect("env-purge-doc", _forget)
    return {"parallel_read_safe": False}
