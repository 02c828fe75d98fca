"""`torch.utils.weak`: references and dicts that do not keep tensors, which are keys by identity.

optimum uses it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to another if their objects are the same one."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdRef):
            return NotImplemented
        one, two = self(), other()
        return self is other or (one is not None and one is two)

    def __ne__(self, other: object) -> bool:
        return not self == other


class TensorWeakRef:
    """A weak reference to a tensor; a call returns the tensor, or None after it was freed.

    Example:
        >>> import plait
        >>> from plait_torch._weak import TensorWeakRef
        >>> x = plait.ones(1)
        >>> reference = TensorWeakRef(x)
        >>> reference() is x
        True
        >>> del x
        >>> reference() is None
        True
    """

    def __init__(self, tensor: Any) -> None:
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Any:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict whose keys are objects by identity; an entry goes with its key.

    Example:
        >>> import plait
        >>> from plait_torch._weak import WeakIdKeyDictionary
        >>> x, names = plait.ones(2), WeakIdKeyDictionary()
        >>> names[x] = "x"
        >>> names[x], plait.ones(2) in names
        ('x', False)
        >>> del x
        >>> len(names)
        0
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: dict[Any, Any] = {}
        self.ref_type = ref_type
        data = self.data

        def forget(reference: Any) -> None:
            data.pop(reference, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # an object of which there are no weak references
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Return another dict with the same entries."""
        result = type(self)(ref_type=self.ref_type)
        for key in self:
            result[key] = self[key]
        return result

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} entries>"


WeakTensorKeyDictionary = WeakIdKeyDictionary
