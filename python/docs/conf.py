"""How the documentation is built; nothing in it needs the network, neither when it is built nor when it is read."""

import ast
import logging
import pathlib
import re
import sys

from sphinx.ext.napoleon import Config, GoogleDocstring

import batchquad

# A package of the theme configures logging; what the runs on the pages say is not for the terminal.
logging.getLogger("batchquad").propagate = False

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
autodoc_typehints = "signature"
#: Names for types that would fill a page.
autodoc_type_aliases = {name: name for name in ("ExecutorLike", "LogLikelihood", "PriorLike", "ProgressLike", "StartLike")}
autodoc_member_order = "bysource"


def arguments(app, what, name, obj, options, lines):
    """The ``Args:`` of functions. Not of properties, whose first sentences would be taken for types where they have a colon."""
    if what in ("function", "method", "class"):
        lines[:] = GoogleDocstring(lines, Config(napoleon_use_rtype=False), app, what, name, obj, options).lines()


def _stubs():
    """Signatures of the native classes, by name, from their stub."""
    tree = ast.parse((pathlib.Path(batchquad.__file__).parent / "_batchquad.pyi").read_text())
    found = {}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for function in (node for node in kind.body if isinstance(node, ast.FunctionDef)):
            function.args.args = [one for one in function.args.args if one.arg not in ("self", "cls")]
            returns = ast.unparse(function.returns).replace("_Array", "NDArray[float64]") if function.returns else None
            found[f"{kind.name}.{function.name}"] = f"({ast.unparse(function.args)})".replace("_Array", "NDArray[float64]"), returns
    return found


STUBS = _stubs()


def native(app, what, name, obj, options, signature, returns):
    """Native code has no annotations; its stub has. Where a union has an alias in it, Python shows the alias as a reference."""
    if what == "method" and (found := STUBS.get(name.removeprefix("batchquad.").removeprefix("_batchquad."))):
        return found
    if signature is None:
        return None
    return re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", signature), returns


def setup(app):
    app.connect("autodoc-process-signature", native)
    app.connect("autodoc-process-docstring", arguments)
