"""Sphinx configuration: `nox -s docs` builds with warnings as errors."""

from __future__ import annotations

import os
import pathlib
import sys

import plait_abi

DOCS = pathlib.Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent / "tools")]  # the extensions beside this file

import changelog  # noqa: E402
from project_facts import REPOSITORY  # noqa: E402

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
    "sphinx_design",  # cards of the front page
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
nb_merge_streams = True  # what a cell prints is one block
html_theme = "furo"
html_theme_options = {
    "footer_icons": [{"name": "Repository", "url": REPOSITORY, "html": "Repository"}]
}
html_title = f"plait {release}"
html_favicon = "static/favicon.svg"
html_search_scorer = str(DOCS / "static" / "scorer.js")
html_static_path = ["static"]
html_css_files = ["site.css"]
# the prompts of examples and their output are not copied
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
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


def _write_changelog(app, page, source):  # type: ignore[no-untyped-def]
    """Put the text of the changelog into its page, which is empty in the repository."""
    if page == "changelog":
        source[0] += changelog.page()


def setup(app):  # type: ignore[no-untyped-def]
    """Register the hooks."""
    app.connect("source-read", _write_changelog)
    app.connect("autodoc-skip-member", _skip_operators)
