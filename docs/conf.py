"""Sphinx configuration: `nox -s docs` builds with warnings as errors."""

from __future__ import annotations

import os
import pathlib
import sys

import plait_abi

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # the extensions beside this file
# Stubs of compiled modules are for type checkers: they do not run as modules.
os.environ["SPHINX_AUTODOC_IGNORE_NATIVE_MODULE_TYPE_STUBS"] = "1"

project = "plait"
author = "the plait authors"
copyright = "2026, the plait authors"
release = version = plait_abi.__version__

extensions = [
    "myst_nb",  # reads Markdown, and runs the pages whose head names a kernel
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "c_header",
    "mathml",
    "page_sizes",
    "public_names",
    "reference_links",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
templates_path = ["templates"]
exclude_patterns = ["_build", "templates", "static"]
html_math_renderer = "mathml"
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
html_theme = "furo"
html_title = "plait"
html_static_path = ["static"]
html_css_files = ["site.css"]
# the prompts of examples and their output are not copied
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_show_sourcelink = False
html_split_index = True
autodoc_typehints = "description"
autodoc_member_order = "bysource"
# Single backticks name code, as in the operators' docstrings.
default_role = "code"
# An annotation `type` is Python's, but Sphinx also finds the attribute `type` of devices.
suppress_warnings = ["ref.python"]

# members for optimizers and engines inside of plait
INTERNAL = {"instead_of_sparse", "gradient_factor"}


def _skip_operators(app, what, name, obj, skip, options):  # type: ignore[no-untyped-def]
    """Leave operators out of the packages' pages, as reference/operators/ has them, and names that
    are for subclasses inside of plait.
    """
    return True if isinstance(obj, plait_abi.Operator) or name in INTERNAL else None


def setup(app):  # type: ignore[no-untyped-def]
    """Register the hook."""
    app.connect("autodoc-skip-member", _skip_operators)
