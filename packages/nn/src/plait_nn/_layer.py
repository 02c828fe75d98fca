"""The declarations of layers: their dimensions, the function that they call, and what their repr
shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from plait_nn import functional as F
from plait_nn._module import Module


class LookedUp:
    """The function of a layer by its name in `plait.nn.functional`.

    It is looked up at each call, so that a function that a program puts into `functional` counts
    for layers too, as it does in PyTorch.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        return getattr(F, self._name)


class Layer(Module):
    """The base of layers whose classes differ in a few facts, which stand beside the class's name.

    Class arguments:
        dims: the number of dimensions of a sample, without batch and channels.
        function: the name of ``self._function`` in `plait.nn.functional`.
        fields: names of attributes that the repr shows; ``inplace`` only if it is true.
    """

    _dims: ClassVar[int]
    _function: ClassVar[Callable[..., Any]]
    _shown: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(
        cls,
        *,
        dims: int | None = None,
        function: str | None = None,
        fields: str | None = None,
        **options: Any,
    ) -> None:
        super().__init_subclass__(**options)
        if dims is not None:
            cls._dims = dims
        if function is not None:
            cls._function = LookedUp(function)  # type: ignore[assignment]
        if fields is not None:
            cls._shown = tuple(fields.split())

    def extra_repr(self) -> str:
        values = ((name, getattr(self, name)) for name in self._shown)
        return ", ".join(
            f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}"
            for name, value in values
            if name != "inplace" or value
        )


class Unchanged:
    """Whether layers call the functions that they called when they were imported.

    Args:
        names: the name of the function in `plait.nn.functional` for each type of layer.
    """

    def __init__(self, names: Mapping[type, str]) -> None:
        self._own = {kind: (name, getattr(F, name)) for kind, name in names.items()}

    def __call__(self, layers: Iterable[object]) -> bool:
        """Return False if a program has put a function of its own in the place of one."""
        pairs = (self._own[type(layer)] for layer in layers)
        return all(getattr(F, name) is own for name, own in pairs)
