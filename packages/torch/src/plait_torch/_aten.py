"""``torch.ops.aten``: the operators below derivatives, as ``__torch_dispatch__`` sees them: names
with overloads, schemas, and plait's calls in the form of PyTorch's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import plait
from plait_abi import operator
from plait_core import _core
from plait_torch import _functions

__all__ = ["Argument", "FunctionSchema", "OpOverload", "OpOverloadPacket", "of_call", "packet"]


class Argument:
    """An argument in a schema."""

    def __init__(self, text: str, kwarg_only: bool) -> None:
        kind, _, rest = text.rpartition(" ")
        self.name, equals, default = rest.partition("=")
        self.name = self.name.partition("|")[0]
        self.type, self.kwarg_only = kind, kwarg_only
        self.is_write = "!" in kind
        self.alias_info = _AliasInfo(self.is_write) if "(" in kind or self.is_write else None
        self._default = default if equals else None

    def has_default_value(self) -> bool:
        """Return whether a call may leave the argument out."""
        return self._default is not None

    @property
    def default_value(self) -> Any:
        """The value that the argument has then."""
        return None if self._default is None else _value(self._default)

    def __repr__(self) -> str:
        default = "" if self._default is None else f"={self._default}"
        return f"{self.type} {self.name}{default}"


class _AliasInfo:
    def __init__(self, is_write: bool) -> None:
        self.is_write = is_write


def _value(text: str) -> Any:
    words = {"None": None, "True": True, "False": False, "()": ()}
    if text in words:
        return words[text]
    if text.startswith('"'):
        return text[1:-1]
    if text.startswith("("):
        return tuple(_value(each) for each in text[1:-1].split(", "))
    try:
        return float(text) if re.search(r"[.e]", text) else int(text)
    except ValueError:
        return getattr(plait, text, text)


class FunctionSchema:
    """What ``func._schema`` says of an operator: its names, arguments and results."""

    def __init__(self, name: str, overload_name: str, text: str, in_place: bool) -> None:
        self.name, self.overload_name = name, overload_name
        inner, _, returns = text.partition(") -> ")
        parts = [each for each in _split(inner.partition("(")[2]) if each]
        star = parts.index("*") if "*" in parts else len(parts)
        self.arguments = [Argument(each, i > star) for i, each in enumerate(parts) if each != "*"]
        if in_place and self.arguments:
            first = self.arguments[0]
            first.is_write, first.alias_info = True, _AliasInfo(True)
        self.returns = [Argument(f"{each} ", False) for each in _split(returns.strip("()"))]
        self.is_mutable = any(each.is_write for each in self.arguments)

    def __str__(self) -> str:
        overload = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{overload}({', '.join(map(repr, self.arguments))})"


def _split(text: str) -> list[str]:
    """Return the parts of a list at its top level."""
    return re.split(r", (?![^(\[]*[)\]])", text) if text else []


@functools.cache
def _schema_text(name: str, overload: str = "") -> str:
    """Return plait's schema of an operator, or of one without arguments."""
    try:
        result = operator(name)
    except AttributeError:
        return f"{name}() -> Tensor"
    for each in result.schemas:
        if each.partition("(")[0] == f"{name.rstrip('_')}.{overload}":
            return str(each)
    return str(result.schemas[0])


class OpOverload:
    """An operator with its overload, ``torch.ops.aten.add.Tensor``: what ``__torch_dispatch__``
    gets, a key of tables, and a call of plait's operator of that name.
    """

    namespace = "aten"
    tags: tuple[Any, ...] = ()

    def __init__(self, overloadpacket: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = self._overloadpacket = overloadpacket
        self._opname, self._overloadname = overloadpacket.__name__, overload
        self.__name__ = f"{self._opname}.{overload}"
        self.__qualname__ = self.__name__
        self.__module__ = "torch._ops.aten"

    @functools.cached_property
    def _schema(self) -> FunctionSchema:
        overload = "" if self._overloadname == "default" else self._overloadname
        text = _schema_text(self._opname, overload)
        in_place = self._opname.endswith("_") and not self._opname.endswith("__")
        return FunctionSchema(f"aten::{self._opname}", overload, text, in_place)

    @property
    def is_view(self) -> bool:
        """Whether the result is a view of an argument."""
        return "(a)" in _schema_text(self._opname) and not self._opname.endswith("_")

    def name(self) -> str:
        """Return the name, ``"aten::add.Tensor"``; the overload "default" is not named."""
        overload = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self._opname}{overload}"

    def has_kernel_for_any_dispatch_key(self, keys: Any) -> bool:
        """Return True: the kernels are plait's."""
        return True

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self._opname}.{self._overloadname}"

    def __copy__(self) -> OpOverload:
        return self

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self  # libraries copy tables whose keys it is

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _call(self._opname, args, kwargs)

    def decompose(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return NotImplemented: what plait makes of other operators arrives as those."""
        return NotImplemented


class OpOverloadPacket:
    """All overloads of an operator, ``torch.ops.aten.add``; they are its attributes."""

    namespace = "aten"

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._qualified_op_name = f"aten::{name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __copy__(self) -> OpOverloadPacket:
        return self

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self  # libraries copy tables whose keys it is

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("_"):
            raise AttributeError(overload)
        self.__dict__[overload] = OpOverload(self, overload)
        return self.__dict__[overload]  # type: ignore[no-any-return]

    def overloads(self) -> list[str]:
        """Return the names of the requested overloads."""
        return [name for name, each in self.__dict__.items() if isinstance(each, OpOverload)]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _call(self.__name__, args, kwargs)


@functools.cache
def packet(name: str) -> OpOverloadPacket:
    """Return the operator of a name, the same object each time."""
    return OpOverloadPacket(name)


# ---- calls of plait's operators by PyTorch's names


def _to_copy(x: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None,
             **others: Any) -> Any:  # fmt: skip
    result = x.to(device=device or x.device, dtype=dtype or x.dtype, copy=True)
    return result if memory_format is None else result.contiguous(memory_format=memory_format)


def convolution_of(x: Any, weight: Any, transposed: bool = False) -> Callable[..., Any]:
    """Return the convolution, such as `conv2d`, that has as many dimensions as the weight."""
    if weight.ndim not in (3, 4, 5):
        raise plait.ShapeError(
            "convolution: `weight` must have 3 to 5 dimensions: channels, channels, and the "
            f"kernel's sizes; got weight {tuple(weight.shape)} and input {tuple(x.shape)}"
        )
    name = f"conv{'_transpose' * transposed}{weight.ndim - 2}d"
    function: Callable[..., Any] = getattr(plait.nn.functional, name)
    return function


def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    function = convolution_of(x, weight, bool(transposed))
    if transposed:
        return function(x, weight, bias, stride, padding, output_padding, groups, dilation)
    return function(x, weight, bias, stride, padding, dilation, groups)


_CALLS: dict[str, Callable[..., Any]] = {
    "_conj": lambda x: x.conj(),
    "_local_scalar_dense": lambda x: x.item(),
    "_log_softmax": lambda x, dim, half_to_float=False: operator("log_softmax")(x, dim),
    "_softmax": lambda x, dim, half_to_float=False: operator("softmax")(x, dim),
    "_to_copy": _to_copy,
    "_unsafe_view": lambda x, size: x.reshape(size),
    "clone": lambda x, memory_format=plait.preserve_format: x.clone(memory_format=memory_format),
    "convolution": _convolution,
    "index": lambda x, indices: x[tuple(slice(None) if i is None else i for i in indices)],
    "index_put": _functions.index_put,
    "index_put_": _functions.index_put_,
    "lift_fresh": lambda x: x,
    "slice": lambda x, dim=0, start=None, end=None, step=1: operator("slice")(
        x, dim, start, end, step
    ),
    "squeeze": lambda x, *dim: x.squeeze(*dim),
    "sym_numel": lambda x: x.numel(),
    "sym_size": lambda x, *dim: x.size(*dim),
    "sym_storage_offset": lambda x: x.storage_offset(),
    "sym_stride": lambda x, *dim: x.stride(*dim),
}


def _call(name: str, args: Any, kwargs: Any) -> Any:
    special = _CALLS.get(name)
    return (special or _function(name))(*args, **kwargs)


@functools.cache
def _function(name: str) -> Any:
    try:
        return operator(name)
    except AttributeError:
        pass
    for namespace in (plait, plait.nn.functional, plait.Tensor):
        if hasattr(namespace, name):
            return getattr(namespace, name)
    text = f"torch.ops.aten.{name}: plait has no operator of that name"
    raise NotImplementedError(f"plait_torch: {text}")


# ---- plait's calls as PyTorch's

# overloads of operators whose operands are tensors or numbers: two tensors; the second is a number;
# the first is one
_BY_OPERANDS: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys((
        "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "eq", "fill_", "fmod", "ge",
        "gt", "le", "lerp", "lt", "masked_fill", "ne", "remainder", "true_divide",
    ), ("Tensor", "Scalar", "Scalar")),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"),
                    ("Tensor", "Tensor_Scalar", "Scalar_Tensor")),
    **dict.fromkeys(("linspace.tensors", "logspace.tensors"),
                    ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")),
    "floor_divide": ("default", "Scalar", "Scalar"),
    "normal": ("Tensor_Tensor", "Tensor_float", "float_Tensor"),
    "pow": ("Tensor_Tensor", "Tensor_Scalar", "Scalar"),
    "xlogy": ("Tensor", "Scalar_Other", "Scalar_Self"),
}  # fmt: skip
# of operators that have one overload in plait, and PyTorch's is not "default"
_OVERLOADS = {
    **dict.fromkeys(("add", "sub", "mul", "rsub", "slice", "index", "split"), "Tensor"),
    **dict.fromkeys(("transpose", "select", "unbind"), "int"),
    **dict.fromkeys(("std", "var", "std_mean", "var_mean"), "correction"),
    "randint": "low", "scatter": "src", "where": "self", "norm": "ScalarOpt_dim",
    "repeat_interleave": "self_int", "where.condition": "default", "any.dim": "dims",
    "all.dim": "dims", "squeeze.dim": "dims", "randint.high": "default", "to": "dtype",
    "bernoulli_": "float", "empty": "memory_format", "normal.size": "float_float",
    "normal.std": "float_Tensor", "prod.dim": "dim_int", "randint_like": "low_dtype",
    "randint_like.high": "default", "repeat_interleave.counts": "Tensor",
    "repeat_interleave.tensor": "self_Tensor", "scatter_reduce": "two",
}  # fmt: skip


def _is_tensor(value: Any) -> bool:
    return isinstance(value, plait.Tensor)


def _overload(base: str, overload: str, args: Any) -> str:
    """Return PyTorch's name for the overload of a call."""
    name = f"{base}.{overload}" if overload else base
    if base == "div":
        return "Tensor_mode" if len(args) > 2 and args[2] is not None else "Tensor"
    if not overload and base in ("sum", "mean"):
        dim = {"sum": "dim_IntList", "mean": "dim"}[base]
        return "default" if args[1] is None else dim
    if name in _BY_OPERANDS:
        second = args[2] if base in ("lerp", "masked_fill") else args[1]
        row = _BY_OPERANDS[name]
        return row[1] if not _is_tensor(second) else row[0 if _is_tensor(args[0]) else 2]
    return _OVERLOADS.get(name, overload or "default")


def _cast(args: Any) -> Any:
    return packet("_to_copy").default, args[:1], {"dtype": args[1]}


def _softmax(name: str) -> Any:
    def made(args: Any) -> Any:
        if len(args) > 2 and args[2] is not None:
            return packet(name).int, args[:2], {"dtype": args[2]}
        return packet(f"_{name}").default, (*args[:2], False), {}

    return made


def _conv(args: Any) -> Any:
    *first, groups = args
    return packet("convolution").default, (*first, False, (0,) * len(args[3]), groups), {}


def _reshape(args: Any) -> Any:
    name = "view" if args[0].is_contiguous() else "_unsafe_view"
    return packet(name).default, args, {}


def _narrow(args: Any) -> Any:
    x, dim, start, length = args
    return packet("slice").Tensor, (x, dim, start, start + length), {}


def _sort(args: Any) -> Any:
    x, dim, descending, stable = args
    if not stable:
        return packet("sort").default, args[: 3 if descending else 2 if dim != -1 else 1], {}
    return packet("sort").stable, (x,), {"stable": True, "dim": dim, "descending": descending}


def _index(args: Any) -> Any:
    return packet("index").Tensor, (args[0], _core._whole_masks(args[1])), {}


def _index_put_(args: Any) -> Any:
    x, indices, value, *accumulate = args
    if not _is_tensor(value):
        value = plait.tensor(value, dtype=x.dtype, device=x.device)
    more = (True,) if any(accumulate) else ()
    return packet("index_put_").default, (x, _core._whole_masks(indices), value, *more), {}


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "cast": _cast,
    "conv2d": _conv,
    "dense": lambda args: (
        packet("clone").default,
        args,
        {"memory_format": plait.contiguous_format},
    ),
    "flip_view": lambda args: (packet("flip").default, args, {}),
    "index_put_tensors_": _index_put_,
    "index_tensors": _index,
    "log_softmax": _softmax("log_softmax"),
    "narrow": _narrow,
    "reshape": _reshape,
    "softmax": _softmax("softmax"),
    "sort": _sort,
}


def _shortened(schema: FunctionSchema, args: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments without those at the end that have their defaults."""
    pairs = list(zip(schema.arguments, args, strict=False))
    kwargs = {
        each.name: value for each, value in pairs
        if each.kwarg_only and not _is_default(each, value)
    }  # fmt: skip
    first = [(each, value) for each, value in pairs if not each.kwarg_only]
    while first and _is_default(*first[-1]):
        first.pop()
    return tuple(value for _, value in first), kwargs


def _is_default(argument: Argument, value: Any) -> bool:
    if not argument.has_default_value() or _is_tensor(value):
        return False
    default = argument.default_value
    if isinstance(value, tuple) and isinstance(default, int):
        return all(each == default for each in value)
    return type(value) is type(default) and bool(value == default)


def of_call(name: str, form: int, args: Any, targets: Any) -> tuple[OpOverload, Any, Any]:
    """Return a call of plait's operator as PyTorch has it: operator, arguments, keywords.

    Args:
        name: plait's name of the operator, with its overload.
        form: 0 for the function, 1 for the in-place form, 2 for ``out=``.
        args: all arguments, in the order of plait's schema.
        targets: the tensors that forms 1 and 2 write to.
    """
    base, _, overload = name.partition(".")
    if form == 0 and base in _SPECIAL:
        return _SPECIAL[base](args)  # type: ignore[no-any-return]
    named = packet(f"{base}_" if form == 1 else base)
    schema = FunctionSchema(base, overload, _schema_text(base, overload), False)
    choice = "out" if form == 2 else _overload(base, overload, args)
    short, kwargs = _shortened(schema, args)
    if form == 2:
        kwargs["out"] = targets[0] if len(targets) == 1 else tuple(targets)
    return getattr(named, choice), short, kwargs
