"""The one exception of the build helper."""

from __future__ import annotations


class BuildError(Exception):
    """A build cannot go on; the text says what is required, what was found, and the remedy.

    Example:
        >>> from plait_abi.build import BuildError, setup
        >>> try:
        ...     setup()  # in a folder without src/
        ... except BuildError as error:
        ...     print(str(error).partition(";")[0])
        setup: `package` is required unless src/ holds exactly one package
    """
