"""Attribute lookup and calls in C for classes that keep members in dicts, as modules do.

A class with ``__getattr__`` needs a call of Python code for every member. For a class whose
``__getattr__`` searches the dicts ``_parameters``, ``_buffers`` and ``_modules`` of the instance's
``__dict__``, in this order, a function in C does the same in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_core import _core

__all__ = ["has", "install", "install_calls", "installed"]


def install(cls: type, getattr: Callable[[Any, str], Any]) -> bool:
    """Look members of a class's instances up in C, if the result is what Python would give.

    An attribute is searched in Python's order: data descriptors of the class, the instance's
    ``__dict__``, other attributes of the class, the registries. ``getattr`` is called for names
    that none of these has, and if a registry is not exactly a dict. When ``__getattr__``,
    ``__getattribute__`` or the bases of the class, or of one of its bases, are assigned later,
    Python restores its own lookup. Subclasses start with Python's lookup.

    Args:
        cls: the class.
        getattr: the ``__getattr__`` that looks into the registries.

    Returns:
        Whether lookups are in C now: not if the class gets another ``__getattr__`` by its MRO, or a
        ``__getattribute__`` that is not ``object``'s.

    Raises:
        TypeError: ``cls`` is not a class.

    Example:
        >>> from plait_core import attribute_lookup
        >>> class Holder:
        ...     def __init__(self):
        ...         self._parameters = {"weight": 3}
        ...     def __getattr__(self, name):
        ...         if name in self._parameters:
        ...             return self._parameters[name]
        ...         raise AttributeError(name)
        >>> attribute_lookup.install(Holder, Holder.__getattr__)
        True
        >>> Holder().weight
        3
    """
    return _core._install_attribute_lookup(cls, getattr)


def install_calls(
    cls: type,
    call: Callable[..., Any],
    note: Callable[[Exception, Any], None],
    attributes: dict[str, Any],
) -> bool:
    """Call a class's instances in C, if the result is what its ``__call__`` would give.

    A call runs the class's ``forward``, and ``note(error, instance)`` if that raises an Exception.
    ``call`` runs instead where a dict of hooks is not empty or not there, and where ``forward`` is
    no function of the class. The dicts are ``_backward_pre_hooks``, ``_backward_hooks``,
    ``_forward_hooks`` and ``_forward_pre_hooks``, in the instance's ``__dict__`` and in
    ``attributes``. Python restores its own call when ``__call__`` or the bases are assigned later.

    Args:
        cls: a class; it may have a ``__getattr__`` of its own.
        call: its ``__call__``, one function for all classes of the process.
        note: called with an exception and the instance that it leaves.
        attributes: the ``__dict__`` of an object with the hooks of all calls; its dicts of hooks
            are used for the life of the process.

    Returns:
        Whether calls are in C now: not if the class has another ``__call__``, or a
        ``__getattribute__`` that is not ``object``'s.

    Raises:
        TypeError: ``cls`` is not a class.

    Example:
        >>> from plait_core import attribute_lookup
        >>> attribute_lookup.install_calls(int, print, print, {})
        False
    """
    return _core._install_module_calls(cls, call, note, attributes)


def has(instance: object, name: str) -> bool:
    """Return what ``hasattr(instance, name)`` returns, in less time if that is False.

    Where `install` is in force for the instance's class, ``getattr`` is not called for a name that
    is in none of the dicts, as it would raise.

    Example:
        >>> from plait_core import attribute_lookup
        >>> attribute_lookup.has(3, "real"), attribute_lookup.has(3, "weight")
        (True, False)
    """
    return _core._has_attribute(instance, name)


def installed(cls: type) -> bool:
    """Return whether `install` is in force for a class.

    Example:
        >>> from plait_core import attribute_lookup
        >>> attribute_lookup.installed(int)
        False
    """
    return _core._has_attribute_lookup(cls)
