"""The one exception of the build helper."""

from __future__ import annotations

__all__ = ["BuildError"]


class BuildError(Exception):
    """A build cannot go on; the text says what is required, what was found, and the remedy."""
