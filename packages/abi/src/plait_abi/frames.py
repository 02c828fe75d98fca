"""The frame of a program's own code: where warnings and errors of plait's packages point to."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from plait_abi.binding import is_own_file

__all__ = ["user_frame", "warn"]


def user_frame() -> FrameType:
    """Return the innermost frame outside of plait's packages; the outermost one if there is none.

    Errors about collectives and warnings name this frame, and so do call sites of operators, which
    name the innermost one if there is none.

    Example:
        >>> from plait_abi.frames import user_frame
        >>> user_frame().f_globals is globals()
        True
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn about the line of the program that called plait, however deep the caller is.

    Example:
        >>> import warnings
        >>> from plait_abi.frames import warn
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn("the mean of no elements")
        >>> str(caught[0].message)
        'the mean of no elements'
    """
    frame = user_frame()
    space = frame.f_globals
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        space.get("__name__", "<unknown>"),
        space.setdefault("__warningregistry__", {}),
    )
