"""What values of TorchScript are in Python, and what code may do with them beside operators.

Tensors, numbers, texts, lists, tuples and dicts are those of Python. Modules, objects, functions
and classes of an archive are instances of the classes named in `_module` and `_unit`; code reaches
nothing of them but what the archive's classes declare.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import typing
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import plait
from plait_torch._futures import Future
from plait_torch._torchscript._codes import dtype_number, layout_number
from plait_torch._torchscript._errors import ScriptError, raised
from plait_torch._torchscript._late import late
from plait_torch._torchscript._numbers import as_number
from plait_torch._torchscript._unit import ROOT, Class, Function, refused

_PLAIN = (list, tuple, dict, str, int, float, bool, complex)


class Scripted:
    """The base of modules and objects of an archive.

    Attributes:
        script_class: the class.
    """

    script_class: Class

    def script_get(self, name: str) -> Any:
        """Return a declared attribute."""
        raise NotImplementedError

    def script_set(self, name: str, value: Any) -> None:
        """Set a declared attribute."""
        raise NotImplementedError


def attribute(owner: Any, name: str) -> Any:
    """Return ``owner.name`` where the owner's class declares it."""
    if isinstance(owner, Scripted):
        return owner.script_get(name)
    if isinstance(owner, tuple) and name in getattr(owner, "_fields", ()):
        return getattr(owner, name)
    if isinstance(owner, enum.Enum) and name in ("name", "value"):
        return getattr(owner, name)
    if isinstance(owner, plait.Tensor) and name in ("real", "imag", "data", "grad", "T", "mT", "H"):
        return getattr(owner, name)
    if isinstance(owner, plait.Tensor) and name in _OF_TENSORS:
        return _OF_TENSORS[name](owner)
    if isinstance(owner, plait.device) and name in ("type", "index"):
        return getattr(owner, name)
    raise ScriptError(f"TorchScript: a {_kind(owner)} has no attribute {name!r}")


_OF_TENSORS: dict[str, Callable[[Any], Any]] = {
    "shape": lambda x: list(x.shape),
    "dtype": lambda x: dtype_number(x.dtype),
    "device": lambda x: x.device,
    "layout": lambda x: layout_number(x.layout),
    "ndim": lambda x: x.ndim,
    "requires_grad": lambda x: x.requires_grad,
    "is_cuda": lambda x: x.device.type == "cuda",
    "is_sparse": lambda x: x.layout != plait.strided,
    "is_leaf": lambda x: x.is_leaf,
}


def _kind(value: Any) -> str:
    if isinstance(value, Scripted):
        return value.script_class.name
    return type(value).__name__


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """Do ``owner.name = value``."""
    if not isinstance(owner, Scripted):
        raise ScriptError(f"TorchScript: an attribute of a {_kind(owner)} cannot be set")
    owner.script_set(name, value)


def bound(owner: Any, function: Function) -> Callable[..., Any]:
    """Return a method of an object."""
    call = function.call
    return lambda *args, **kwargs: call(owner, *args, **kwargs)


def method(owner: Any, name: str) -> Callable[..., Any]:
    """Return ``owner.name`` to be called."""
    if isinstance(owner, Scripted):
        function = owner.script_class.methods.get(name)
        if function is None:  # a module's attribute may be a function
            return called(owner.script_get(name))
        return bound(owner, function)
    if isinstance(owner, (Class, Function)):
        raise ScriptError(f"TorchScript: {owner!r} has no method {name!r}")
    function = None if name.startswith("__") else late.operator_function(name)
    if function is None or not isinstance(owner, (plait.Tensor, *_PLAIN)):
        raise ScriptError(f"TorchScript: a {_kind(owner)} has no method {name!r}")
    return lambda *args, **kwargs: function(owner, *args, **kwargs)


def called(value: Any) -> Callable[..., Any]:
    """Return what a call of a value calls: a function, a class or a module of the archive."""
    if isinstance(value, Function):
        return value.call
    if isinstance(value, Class):
        if value.base == "NamedTuple":
            return named_tuple(value)  # type: ignore[no-any-return]
        if value.base == "Enum":
            return enumeration(value)  # type: ignore[no-any-return]
        return lambda *args, **kwargs: _constructed(value, args, kwargs)
    if isinstance(value, Scripted):
        return method(value, "forward")
    raise ScriptError(f"TorchScript: a {_kind(value)} is not a function")


def made(found: Any) -> Any:
    """Return a new object of a class, without attributes."""
    if not isinstance(found, Class) or found.base in ("NamedTuple", "Enum", "Interface"):
        raise ScriptError(f"TorchScript: {found!r} is not a class of objects")
    return late.new_object(found)


def _constructed(found: Class, args: Any, kwargs: Any) -> Any:
    result = made(found)
    if "__init__" in found.methods:
        method(result, "__init__")(*args, **kwargs)
    return result


def named_tuple(found: Class) -> Any:
    """Return the class of Python for a named tuple of an archive."""
    if found.made is None:
        last = found.name.rpartition(".")[2]
        values = [found.values[each] for each in found.types if each in found.values]
        found.made = namedtuple(last, list(found.types), defaults=values, rename=True)  # type: ignore[misc]
    return found.made


def enumeration(found: Class) -> Any:
    """Return the class of Python for an enumeration of an archive."""
    if found.made is None:
        try:
            found.made = enum.Enum(found.name.rpartition(".")[2], found.values)  # type: ignore[misc]
        except (TypeError, ValueError) as error:
            raise ScriptError(
                f"TorchScript: {found.name} is not an enumeration: {error}"
            ) from error
    return found.made


def unpacked(value: Any) -> Any:
    """Return what ``a, b = value`` takes apart."""
    return value.unbind() if isinstance(value, plait.Tensor) else value


def iterated(value: Any) -> Any:
    """Return what a ``for`` runs over; a number is a range."""
    if isinstance(value, (range, list, tuple, str, zip, enumerate)):
        return value
    if isinstance(value, dict):
        return list(value)
    if isinstance(value, plait.Tensor):
        return value.unbind()
    if isinstance(value, int):
        return range(value)
    if isinstance(value, Scripted):
        return value.script_get("")
    raise ScriptError(f"TorchScript: a {_kind(value)} has no elements")


@contextlib.contextmanager
def entered(value: Any) -> Iterator[Any]:
    """Enter and leave an object of an archive, for ``with``."""
    if isinstance(value, Scripted) and {"__enter__", "__exit__"} <= set(value.script_class.methods):
        result = method(value, "__enter__")()
        try:
            yield result
        finally:
            method(value, "__exit__")(None, None, None)
    elif isinstance(value, plait.no_grad):
        with value:
            yield value
    else:
        raise ScriptError(f"TorchScript: a {_kind(value)} cannot be entered by `with`")


def failed(message: Any) -> None:
    """Raise the error of an ``assert``."""
    raise raised(f"AssertionError: {message}" if message else "AssertionError: ")


def raising(error: ScriptError) -> Callable[..., Any]:
    """Return a function that raises."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise ScriptError(*error.args)

    return call


def part(value: Any, start: Any, end: Any, step: Any) -> Any:
    """Return ``value[start:end:step]``."""
    if isinstance(value, (list, tuple, str, plait.Tensor)):
        return value[start:end:step]
    raise ScriptError(f"TorchScript: a {_kind(value)} has no slices")


def named_value(names: list[str]) -> Any:
    """Return the dtype's number, the layout or format that ``torch.float32`` names, or None."""
    if names[0] != "torch" or len(names) != 2:
        return None
    value = getattr(plait, names[1], None)
    if isinstance(value, plait.dtype):
        return dtype_number(value)  # a dtype is a number in code
    if isinstance(value, plait.layout):
        return layout_number(value)
    return value if isinstance(value, plait.memory_format) else None


# ---- types


_KINDS: dict[str, Any] = {
    "Tensor": plait.Tensor, "int": int, "float": float, "bool": bool, "str": str,
    "complex": complex, "NoneType": type(None), "None": type(None), "Device": plait.device,
    "List": list, "list": list, "Tuple": tuple, "tuple": tuple, "Dict": dict, "dict": dict,
    "number": (int, float, complex),
}  # fmt: skip


def kinds_of(node: ast.expr, function: Function) -> Any:
    """Return what `is_instance` compares with, for the type of an ``isinstance``."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(kinds_of(each, function) for each in node.elts)
    if isinstance(node, ast.Constant) and node.value is None:
        return type(None)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if node.value.id == "Optional":
            return (kinds_of(node.slice, function), type(None))
        if node.value.id == "Union":
            return kinds_of(node.slice, function)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        base = _KINDS.get(node.value.id)
        if base in (list, tuple, dict):
            return _Of(base, tuple(kinds_of(each, function) for each in inner))
    name = ast.unparse(node)
    if name in _KINDS:
        return _KINDS[name]
    if name.startswith(ROOT):
        return function.unit.find(name)
    raise refused(node, function.record, "is not a type of TorchScript")


class _Of(typing.NamedTuple):
    base: Any
    inner: tuple[Any, ...]


def is_instance(value: Any, kind: Any) -> bool:
    """Return whether a value has a type."""
    if isinstance(kind, _Of):
        if type(value) is not kind.base:
            return False
        if kind.base is dict:
            key, item = kind.inner
            return all(is_instance(k, key) and is_instance(v, item) for k, v in value.items())
        if kind.base is list:
            return all(is_instance(each, kind.inner[0]) for each in value)
        return len(value) == len(kind.inner) and all(map(is_instance, value, kind.inner))
    if isinstance(kind, tuple):
        return any(is_instance(value, each) for each in kind)
    if isinstance(kind, Class):
        if kind.base in ("NamedTuple", "Enum"):
            return isinstance(value, kind.made or ())
        return isinstance(value, Scripted) and value.script_class is kind
    if kind in (int, float):  # a bool is no int here
        return type(value) is kind
    return isinstance(value, kind)


def _range(*args: Any) -> range:
    return range(*map(as_number, args))


def _text(value: Any) -> str:
    return str(value)


def forked(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function at once, and return a future of its result."""
    future: Any = Future()
    future.set_result(function(*args, **kwargs))
    return future


def _fork(value: Any, *args: Any, **kwargs: Any) -> Any:
    return forked(called(value), *args, **kwargs)


def _int(value: Any) -> int:
    return int(value)


def _float(value: Any) -> float:
    return float(value)


def _bool(value: Any) -> bool:
    return bool(value)


def _complex(real: Any, imag: Any = 0) -> complex:
    return complex(as_number(real), as_number(imag))


def _length(value: Any) -> int:
    if isinstance(value, Scripted):
        return len(iterated(value))
    return len(value)


BUILTINS: dict[str, Callable[..., Any]] = {
    "int": _int, "float": _float, "bool": _bool, "str": _text, "complex": _complex,
    "range": _range, "len": _length, "print": print, "fork": _fork, "list": list, "dict": dict,
    "zip": zip, "enumerate": enumerate, "min": min, "max": max, "abs": abs, "sum": sum,
    "round": round, "sorted": sorted, "all": all, "any": any, "ord": ord, "chr": chr,
    "tuple": tuple, "divmod": divmod, "reversed": lambda x: list(reversed(x)), "hex": hex,
    "oct": oct, "bin": bin, "hash": hash,
}  # fmt: skip
