"""A Sphinx extension: pages have at most 300 kB, so that they open quickly on any machine.

A larger page is a warning, which the docs session makes an error. The general index is cut by
letter; the page with all letters, which Sphinx writes too, is removed. The navigation beside a page
shows the branch of the page and not the whole site, which would be 90 kB on each page.
"""

from __future__ import annotations

import pathlib
from typing import Any

from sphinx.util import logging

__all__ = ["setup"]

LARGEST = 300_000  # bytes
WHOLE_INDEX = "genindex-all.html"
LOGGER = logging.getLogger(__name__)


def _shorten_navigation(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let the theme get the contents with all branches closed except that of the page."""
    toctree = context.get("toctree")
    if toctree is not None:
        context["toctree"] = lambda **options: toctree(**{**options, "collapse": True})


def _check(app: Any, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    folder = pathlib.Path(app.outdir)
    (folder / WHOLE_INDEX).unlink(missing_ok=True)
    for page in sorted(folder.rglob("*.html")):
        size = page.stat().st_size
        if size > LARGEST:
            name = page.relative_to(folder)
            LOGGER.warning("%s has %d bytes, more than %d: cut it by topic", name, size, LARGEST)


def setup(app: Any) -> dict[str, Any]:
    """Register both; the theme's own hook, which makes the navigation, has priority 500."""
    app.connect("html-page-context", _shorten_navigation, priority=400)
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
