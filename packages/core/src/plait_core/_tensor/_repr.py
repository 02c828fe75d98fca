"""Tensors as text, in the layout that PyTorch's users know."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import plait_core._core as _core
from plait_abi import binding
from plait_core._core import Tensor


class PrintOptions:
    """Options of printing tensors; see `set_printoptions`."""

    def __init__(self, precision: int = 4, threshold: float = 1000, edgeitems: int = 3) -> None:
        self.precision = precision
        self.threshold = threshold
        self.edgeitems = edgeitems
        self.linewidth = 80
        self.sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Args:
        precision: digits after the point (4), at most 1000.
        threshold: largest number of elements that are printed in full (1000).
        edgeitems: elements that are printed at each end of a dimension of larger tensors (3).
        linewidth: characters in a line (80).
        profile: ``"default"``, ``"short"`` or ``"full"``, applied before the others.
        sci_mode: True or False for scientific notation always or never; None decides by the values.

    Raises:
        TypeError, ValueError: for an option of another type or out of range, or an unknown profile;
            all options stay as they were.

    Example:
        >>> import plait_core as pc
        >>> pc.set_printoptions(precision=2)
        >>> pc.tensor([1 / 3])
        tensor([0.33])
        >>> pc.set_printoptions(profile="default")
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(
            f"set_printoptions: `profile` must be one of {sorted(_PROFILES)}, got {profile!r}"
        )
    if sci_mode is not None and not isinstance(sci_mode, bool):
        raise TypeError(f"set_printoptions: `sci_mode` must be a bool or None, got {sci_mode!r}")
    selection = {
        "precision": _whole("precision", precision, 0, 1000),
        "threshold": _count("threshold", threshold),
        "edgeitems": _whole("edgeitems", edgeitems, 1, sys.maxsize),
        "linewidth": _whole("linewidth", linewidth, 1, sys.maxsize),
    }
    # all options are checked before one is set
    if profile is not None:
        vars(_options).update(vars(_PROFILES[profile]))
    for name, value in selection.items():
        if value is not None:
            setattr(_options, name, value)
    if sci_mode is not None or profile is None:
        _options.sci_mode = sci_mode


def _whole(name: str, value: Any, low: int, high: int) -> int | None:
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"set_printoptions: `{name}` must be an int, got {type(value).__name__}"
        ) from None
    if isinstance(value, bool) or not low <= number <= high:
        bounds = f"at least {low}" if high == sys.maxsize else f"in [{low}, {high}]"
        raise ValueError(f"set_printoptions: `{name}` must be {bounds}, got {value!r}")
    return number


def _count(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            f"set_printoptions: `{name}` must be an int or infinity, got {type(value).__name__}"
        )
    if not value >= 0:
        raise ValueError(f"set_printoptions: `{name}` must not be negative or nan, got {value!r}")
    return value


def edgeitems() -> int:
    """Return how many elements are shown at each end of a dimension that is cut."""
    return _options.edgeitems


def linewidth() -> int:
    """Return how many characters a line may have."""
    return _options.linewidth


def text_of(self: Tensor) -> str:
    """Return the text of a tensor: elements, then dtype, device and history if they are not the
    default.
    """
    name = "tensor" if type(self) is Tensor else type(self).__name__
    start = f"{name}("
    notes = notes_of(self)
    body = "..." if self.device.type == "meta" else text_of_elements(self.data, len(start))
    text = start + body
    for note in notes:
        last = len(text) - text.rfind("\n") - 1
        gap = f",\n{' ' * len(start)}" if last + len(note) + 3 > _options.linewidth else ", "
        text += gap + note
    return text + ")"


def is_plain(dtype: binding.dtype) -> bool:
    """Return whether a dtype is not printed: numbers without a dtype have it."""
    default = _core.get_default_dtype().name
    of_complex = "complex128" if default == "float64" else "complex64"
    return dtype.name in ("int64", "bool", default, of_complex)


def note_of_dtype(dtype: binding.dtype) -> str:
    """Return the note of a dtype, with the name that programs have of it."""
    return f"dtype={repr(dtype).removeprefix('plait.')}"


def notes_of(self: Tensor) -> list[str]:
    notes = []
    if self.device.type != "cpu":
        notes.append(f"device='{self.device}'")
    no_numbers = self.numel() == 0 or self.device.type == "meta"
    if no_numbers and (self.device.type == "meta" or tuple(self.shape) != (0,)):
        notes.append(f"size={tuple(self.shape)}")
    dtype = self.dtype
    if not is_plain(dtype) or (no_numbers and dtype != _core.get_default_dtype()):
        notes.append(note_of_dtype(dtype))
    node = self.grad_fn
    if node is not None:
        # a Function's context may have an attribute `name` of its own
        notes.append(f"grad_fn=<{type(node).name(node)}>")
    elif self.requires_grad:
        notes.append("requires_grad=True")
    return notes


def text_of_elements(data: Tensor, indent: int) -> str:
    if data.numel() == 0:
        return "[]"
    cut = data.numel() > _options.threshold
    elements, write = shown_elements(data, [cut] * data.ndim)
    return _nest(elements, write, indent)


def shown_elements(data: Tensor, cut: list[bool]) -> tuple[Any, Callable[[Any], str]]:
    """Return the elements that are shown, as nested lists, and what writes one of them.

    A dimension that may be cut and is longer than both its ends has an Ellipsis between them.
    """
    edge = _options.edgeitems
    sizes = zip(cut, data.shape, strict=True)
    long = tuple(may and size > 2 * edge for may, size in sizes)
    is_widened = data.dtype.name == "bfloat16" or data.dtype.name.startswith("float8")
    if data.device.type != "cpu" or is_widened:
        data = _edges(data, long)
    if is_widened:
        data = data._cast(binding.dtype("float32"))
    elements = _visible_elements(data.cpu().numpy(), long)
    return elements, _formatter(list(_leaves(elements)), data.dtype)


def _edges(data: Tensor, long: tuple[bool, ...]) -> Tensor:
    """Return what is printed of a tensor, so that nothing else is copied or converted."""
    edge, join = _options.edgeitems, binding.operator("cat")
    for dim, is_long in enumerate(long):
        if is_long:
            last = data.shape[dim] - edge
            data = join([data.narrow(dim, 0, edge), data.narrow(dim, last, edge)], dim)
    return data


def _visible_elements(array: Any, long: tuple[bool, ...]) -> Any:
    """Return nested lists of numbers, with an Ellipsis in dimensions that are too long."""
    if array.ndim == 0:
        return array.item()
    edge = _options.edgeitems
    if not long[0]:
        return (
            [_visible_elements(row, long[1:]) for row in array]
            if array.ndim > 1
            else array.tolist()
        )
    head = [_visible_elements(row, long[1:]) for row in array[:edge]]
    return [*head, ..., *(_visible_elements(row, long[1:]) for row in array[len(array) - edge :])]


def _leaves(items: Any) -> Iterator[Any]:
    if isinstance(items, list):
        for item in items:
            yield from _leaves(item)
    elif items is not ...:
        yield items


def _formatter(values: list[Any], dtype: binding.dtype) -> Callable[[Any], str]:
    if dtype.is_complex:
        real = _float_formatter([value.real for value in values])
        imag = _float_formatter([abs(value.imag) for value in values])
        return lambda value: _complex_text(value, real, imag)
    if dtype.is_floating_point:
        return _float_formatter(values)
    width = max(len(str(value)) for value in values)
    return lambda value: str(value).rjust(width)


def _complex_text(
    value: complex, real: Callable[[float], str], imag: Callable[[float], str]
) -> str:
    sign = "-" if math.copysign(1, value.imag) < 0 else "+"
    return f"{real(value.real)}{sign}{imag(abs(value.imag)).strip()}j"


def _float_formatter(values: list[float]) -> Callable[[float], str]:
    digits = _options.precision
    finite = [value for value in values if math.isfinite(value) and value != 0]
    sizes = [abs(value) for value in finite]
    whole = all(size == math.ceil(size) for size in sizes)
    low, high = (min(sizes), max(sizes)) if sizes else (1.0, 1.0)
    scientific = high / low > 1000 or high > 1e8 or (low < 1e-4 and not whole)
    if _options.sci_mode is not None and finite:
        scientific = _options.sci_mode

    def write(value: float) -> str:
        if not math.isfinite(value):
            return str(value)
        if scientific:
            return f"{value:.{digits}e}"
        return f"{value:.0f}." if whole else f"{value:.{digits}f}"

    width = max((len(write(value)) for value in finite), default=1)
    return lambda value: write(value).rjust(width)


def _nest(items: Any, write: Callable[[Any], str], indent: int) -> str:
    if not isinstance(items, list):
        return write(items).strip()
    if not any(isinstance(item, list) for item in items):
        return _line([" ..." if item is ... else write(item) for item in items], indent)
    parts = ["..." if item is ... else _nest(item, write, indent + 1) for item in items]
    depth = _depth(items)
    return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(parts) + "]"


def _depth(items: Any) -> int:
    if not isinstance(items, list):
        return 0
    return 1 + max((_depth(item) for item in items), default=0)


def _line(words: list[str], indent: int) -> str:
    # PyTorch does not count the j of complex numbers
    width = max(len(word) - word.endswith("j") for word in words) + 2
    count = max(1, (_options.linewidth - indent) // width)
    rows = [", ".join(words[i : i + count]) for i in range(0, len(words), count)]
    return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
