"""How the documentation is built; nothing in it needs the network, neither when it is built nor when it is read."""

import pathlib
import sys

from sphinx.ext.napoleon import Config, GoogleDocstring

import batchquad

sys.path.insert(0, str(pathlib.Path(__file__).parent / "_ext"))

project = "batchquad"
version = release = batchquad.__version__
author = copyright = "the batchquad authors"
html_title = "batchquad"
html_show_copyright = html_show_sphinx = html_copy_source = False

extensions = ["myst_parser", "sphinx.ext.autodoc", "formulas", "run"]
exclude_patterns = ["_*"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["batchquad.css"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
#: By `formulas`.
html_math_renderer = "mathml"
#: The table of contents of MATH.md links to headings.
myst_heading_anchors = 3

#: Blocks without a language are formulas and outputs.
highlight_language = "none"
default_role = "py:obj"
python_maximum_signature_line_length = 90
autodoc_typehints = "none"
autodoc_member_order = "bysource"


def arguments(app, what, name, obj, options, lines):
    """The ``Args:`` of functions. Not of properties, whose first sentences would be taken for types where they have a colon."""
    if what in ("function", "method", "class"):
        lines[:] = GoogleDocstring(lines, Config(napoleon_use_rtype=False), app, what, name, obj, options).lines()


def setup(app):
    app.connect("autodoc-process-docstring", arguments)
