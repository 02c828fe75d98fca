"""The names that pickles of data may use, and the function that each one stands for."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy as np

from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._machine import Named, keys
from plait_core._checkpoints._safe_globals import BLOCKED, SafeGlobals
from plait_core._core import is_tensor


def sizes_of(value: Any) -> tuple[int, ...]:
    """Return sizes or strides; raise unless they are ints."""
    result = tuple(value)
    if not all(type(n) is int for n in result):
        raise TypeError("sizes and strides must be ints")
    return result


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8"):
        raise TypeError("a text and latin1 are required")
    return text.encode(encoding)


class ArrayState:
    """A NumPy array whose state was not read yet."""

    def __init__(self, *args: Any) -> None:
        """Take the class, shape and kind at the beginning of every pickle of an array."""


def _np_dtype(name: Any, align: Any = False, copy: Any = True) -> np.dtype[Any]:
    if type(name) is not str:
        raise TypeError("the name of a dtype is required")
    result = np.dtype(name)
    if result.hasobject or result.names or result.subdtype:
        raise CheckpointError(
            f"load: an array of {name} (Python objects or records) is not allowed"
        )
    return result


def _np_scalar(dtype: Any, data: Any = b"") -> Any:
    kind = _np_kind(dtype)
    if type(data) is not bytes or len(data) != kind.itemsize:
        raise TypeError("as many bytes as the dtype has are required")
    return np.frombuffer(data, kind)[0]


def _np_kind(dtype: Any) -> np.dtype[Any]:
    if not isinstance(dtype, np.dtype) or dtype.hasobject or not dtype.itemsize:
        raise TypeError("a dtype of numbers is required")
    return dtype


def _np_frombuffer(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray[Any, Any]:
    if type(data) not in (bytes, bytearray) or order not in ("C", "F"):
        raise TypeError("bytes and an order are required")
    array: np.ndarray[Any, Any] = np.frombuffer(bytes(data), _np_kind(dtype)).copy()
    return array.reshape(sizes_of(shape), order="F" if order == "F" else "C")


def build(target: Any, state: Any) -> Any:
    """Set the state of an object that a function of the table made; NotImplemented for others."""
    if type(target) is ArrayState:
        _, shape, dtype, fortran, data = state
        if isinstance(data, str):  # written by Python 2
            data = data.encode("latin-1")
        kind, sizes = _np_kind(dtype), sizes_of(shape)
        if type(data) is not bytes or math.prod(sizes) * kind.itemsize != len(data):
            raise CheckpointError("load: the pickle is damaged: an array's bytes and its shape")
        array = np.frombuffer(data, kind).reshape(sizes, order="F" if fortran else "C").copy()
        return array
    if isinstance(target, np.dtype):
        order = state[1]
        if target.kind in "mM" and len(state) > 8:  # the unit of a date is in the state
            unit, count, *_ = state[8][1]
            target = np.dtype(f"{target.str[1:3]}[{int(count)}{unit.decode('ascii')}]")
        return target.newbyteorder(order) if order in ("<", ">") else target
    if type(target) is OrderedDict and isinstance(state, dict) and set(state) <= {"_metadata"}:
        vars(target).update(state)
        return target
    if is_tensor(target):
        return target  # attributes of a tensor are left out
    return NotImplemented


def _counted(values: Any = ()) -> Counter[Any]:
    if type(values) is not dict:
        raise TypeError("a dict is required")
    return Counter(values)


def _ordered(pairs: Any = ()) -> OrderedDict[Any, Any]:
    if type(pairs) not in (list, tuple, dict):
        raise TypeError("pairs are required")
    return OrderedDict(pairs if type(pairs) is dict else zip(*_split(pairs), strict=True))


def _split(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Return keys and values of pairs; the keys are checked before they are hashed."""
    values = [(key, value) for key, value in pairs]
    return keys([key for key, _ in values]), [value for _, value in values]


def _collected(kind: type) -> Callable[..., Any]:
    def make(values: Any = ()) -> Any:
        if type(values) not in (list, tuple, set, frozenset):
            raise TypeError("a list is required")
        return kind(keys(list(values)))

    return make


def _complex(real: Any = 0, imag: Any = 0) -> complex:
    if not all(type(part) in (int, float) for part in (real, imag)):
        raise TypeError("numbers are required")
    return complex(real, imag)


def _slice(*parts: Any) -> Any:
    # Python frees and hashes slices of slices by recursion without a limit
    if any(type(part) in (slice, tuple) for part in parts):
        raise TypeError("numbers are required")
    return slice(*parts)


def _range(*parts: Any) -> range:
    return range(*sizes_of(parts))


def _bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    if type(data) is str:
        data = _encoded(data, encoding)
    if type(data) not in (bytes, bytearray):
        raise TypeError("bytes are required")
    return bytearray(data)


def refused_call(name: str) -> Callable[..., Any]:
    """Return a function that raises: a name that files may use but not call."""

    def call(*args: Any) -> Any:
        raise CheckpointError(f"load: the pickle makes a {name}, which load does not allow")

    return call


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": _ordered,
    "collections.Counter": _counted,
    "_codecs.encode": _encoded,
    "builtins.bytes": lambda: b"",
    "builtins.set": _collected(set),
    "builtins.frozenset": _collected(frozenset),
    "builtins.complex": _complex,
    "builtins.bytearray": _bytearray,
    "builtins.slice": _slice,
    "builtins.range": _range,
    "numpy.ndarray": refused_call("numpy.ndarray"),
    "numpy.dtype": _np_dtype,
    "numpy.core.multiarray._reconstruct": ArrayState,
    "numpy.core.multiarray.scalar": _np_scalar,
    "numpy.core.numeric._frombuffer": _np_frombuffer,
}
REAL: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype,
    **{f"builtins.{kind.__name__}": kind for kind in (bytes, set, frozenset, complex)},
    **{f"builtins.{kind.__name__}": kind for kind in (bytearray, slice, range)},
}


class RefusedName(CheckpointError, UnpicklingError):
    """A file refers to a name that is not in the table and not listed."""

    def __init__(self, text: str, module: str = "", name: str = "") -> None:
        super().__init__(text)
        self.module, self.name = module, name


class Names:
    """The names that a kind of file may use, and what each one stands for.

    Args:
        functions: the functions that files may call, by their names.
        real: the objects that Python means by some of these names.
        values: what the other names are.
        hint: returns for a refused module and name what may help, or "".
    """

    def __init__(
        self,
        functions: dict[str, Callable[..., Any]],
        real: dict[str, Any],
        values: dict[str, Any],
        hint: Callable[[str, str], str] = lambda module, name: "",
    ) -> None:
        self._table = {name: Named(name, call, real.get(name)) for name, call in functions.items()}
        self._table |= values
        self._hint = hint

    def get(self, module: str, name: str) -> Any:
        """Return the table's entry for a name, or None."""
        if module == "__builtin__":  # Python 2's name
            module = "builtins"
        if module.startswith("numpy._core."):  # NumPy 2's name
            module = "numpy.core." + module.removeprefix("numpy._core.")
        return self._table.get(f"{module}.{name}")

    def find(self, module: str, name: str, safe: SafeGlobals | None = None) -> Any:
        """Return the table's entry for a name, or the listed object; raise if there is none."""
        result = self.get(module, name)
        if result is None and safe:
            result = safe.find(module, name)
        if result is None:
            run = "nothing that is not listed was executed" if safe else "nothing was executed"
            hint = self._hint(module, name)
            if module in BLOCKED:
                hint = f" (names of {module} are refused also if they are listed)"
            raise RefusedName(
                f"load: the file asks for `{module}.{name}`, which is not one of the names "
                f"that load accepts{hint}; {run}. "
                f"load(..., safe_globals=[{name}]) allows this name, and weights_only=False "
                "would execute code of the file: use it only for files that you trust",
                module,
                name,
            )
        return result

    def finding(self, safe: SafeGlobals) -> Callable[[str, str], Any]:
        """Return `find` with the objects that the program listed."""
        return lambda module, name: self.find(module, name, safe)


DATA = Names(FUNCTIONS, REAL, {})
