"""Functions of modules that are imported later than their callers; each of these sets its own.

Code calls code: a method that runs may have to translate another one, and a module knows how to
save itself. So there are calls from earlier modules to later ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Late:
    """The functions.

    Attributes:
        translated: a function of an archive as one of Python (`_translation`).
        operator_function: what ``torch.NAME`` calls, or None (`_operators`).
        new_object: a new object of a class (`_module`).
        save: writes an archive (`_saving`).
        load: reads an archive (`_loading`).
    """

    translated: Callable[..., Any]
    operator_function: Callable[..., Any]
    new_object: Callable[..., Any]
    save: Callable[..., Any]
    load: Callable[..., Any]


late = Late()
