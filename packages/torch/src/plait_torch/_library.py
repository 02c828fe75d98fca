"""`torch.library` and `torch.ops`: operators that a program registers by name, and calls by it."""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import plait
from plait.func.pytree import tree_leaves, tree_map
from plait_torch._aten import packet
from plait_torch._autocast import autocast, is_autocast_enabled
from plait_torch._missing import advice
from plait_torch._refusal import refusing

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "opcheck",
    "ops",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
    "triton_op",
]

_operators: dict[tuple[str, str], CustomOpDef] = {}


def _parts(qualname: str) -> tuple[str, str]:
    namespace, colons, name = qualname.partition("::")
    if not (namespace and colons and name):
        raise ValueError(f'torch.library: "namespace::name" is required, got {qualname!r}')
    return namespace, name.partition("(")[0].partition(".")[0]


def _operator(op: Any) -> CustomOpDef:
    """Return the operator of a name, whose function may be registered later."""
    if isinstance(op, CustomOpDef):
        return op
    parts = _parts(op)
    if parts not in _operators:
        _operators[parts] = CustomOpDef("::".join(parts))
    return _operators[parts]


class CustomOpDef:
    """A named operator, the result of `custom_op` and an attribute of `torch.ops`."""

    def __init__(self, qualname: str) -> None:
        self._qualname = qualname
        self._namespace, self._name = _parts(qualname)
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._fake: Callable[..., Any] | None = None  # of tensors on the device meta
        self._batch: Callable[..., Any] | None = None  # of all samples of `vmap`
        self._autocast: dict[str, Any] = {}  # dtypes, by the type of a device
        self._defined = False  # by a schema, without a function
        self._composite = False  # its functions are made of operators with derivatives
        self.default = self
        self.__name__ = f"{self._namespace}.{self._name}"

    def __repr__(self) -> str:
        return f"<operator {self._qualname}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for kind, dtype in self._autocast.items():
            if is_autocast_enabled(kind):
                args, kwargs = tree_map(_cast(kind, dtype), (args, kwargs))
                with autocast(kind, enabled=False):
                    return self._call(*args, **kwargs)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if self._fake is not None and any(
            isinstance(each, plait.Tensor) and each.device.type == "meta"
            for each in tree_leaves((args, kwargs))
        ):
            return self._fake(*args, **kwargs)
        whole = self._kernels.get("CompositeImplicitAutograd")
        if whole is not None:  # the function is made of operators with derivatives
            return whole(*args, **kwargs)
        if self._composite and self._backward is None:
            return self._kernel()(*args, **kwargs)
        return self._function().apply(*args, **kwargs)

    def register_kernel(self, device_types: Any, func: Any = None, /) -> Any:
        """Register the function for a device type; only ``"cpu"`` is used."""
        kinds = [device_types] if isinstance(device_types, str) or device_types is None else (
            list(device_types)
        )  # fmt: skip

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in kinds:
                self._kernels["default" if kind is None else kind] = function
            return function

        return register if func is None else register(func)

    def register_fake(self, fn: Any, /) -> Any:
        """Register the function that is called for tensors on the device meta."""
        self._fake = fn
        return fn

    def register_vmap(self, func: Any = None) -> Any:
        """Register the function for all samples of `vmap`.

        Args:
            func: a function from ``(info, in_dims, *args)`` to ``(outputs, out_dims)``; None
                returns a decorator.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._batch = function
            return function

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Let calls within `autocast` cast their floating-point tensors to a dtype."""
        self._autocast[device_type] = cast_inputs

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the derivative, in the form of a `Function`.

        Args:
            backward: a function from ``(ctx, *gradients)`` to the gradients of the arguments.
            setup_context: a function of ``(ctx, inputs, output)`` that saves values for `backward`.
        """
        self._backward, self._setup_context = backward, setup_context

    def _kernel(self) -> Callable[..., Any]:
        for kind in ("cpu", "CPU", "default", "CompositeExplicitAutograd"):
            if kind in self._kernels:
                return self._kernels[kind]
        raise NotImplementedError(f"{self._qualname}: no function was registered for the CPU")

    def _function(self) -> Any:
        kernel, backward, keep = self._kernel(), self._backward, self._setup_context
        qualname, batch = self._qualname, self._batch

        class Operator(plait.autograd.Function):
            @staticmethod
            def forward(*args: Any, **kwargs: Any) -> Any:
                return kernel(*args, **kwargs)

            @staticmethod
            def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
                if keep is not None:
                    keep(ctx, inputs, output)

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> Any:
                if backward is None:
                    raise RuntimeError(
                        f"{qualname}: no derivative was registered; `register_autograd` does"
                    )
                return backward(ctx, *gradients)

        if batch is not None:
            kind: Any = Operator  # mypy refuses methods that are assigned
            kind.vmap = staticmethod(batch)
        return Operator


def _cast(kind: str, dtype: Any) -> Callable[[Any], Any]:
    """Return what casts a floating-point tensor of a type of device, and keeps other values."""

    def cast(value: Any) -> Any:
        if not isinstance(value, plait.Tensor) or value.device.type != kind:
            return value
        casts = value.is_floating_point() and value.dtype != plait.float64
        return value.to(dtype) if casts else value

    return cast


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any = (),
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Return a named operator that calls a function; without a function, return a decorator.

    Args:
        name: ``"namespace::name"``; the operator is ``torch.ops.namespace.name`` too.
        fn: the function.
        mutates_args: the names of the arguments that the function writes to.
        device_types: the device types of the function; None is all.
        schema, tags: have no effect.

    Example:
        >>> import plait
        >>> from plait_torch._library import custom_op, ops
        >>> @custom_op("mine::double", mutates_args=())
        ... def double(x: plait.Tensor) -> plait.Tensor:
        ...     return x * 2
        >>> double.register_autograd(lambda ctx, g: g * 2)
        >>> x = plait.ones(2, requires_grad=True)
        >>> ops.mine.double(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def register(function: Callable[..., Any]) -> CustomOpDef:
        _operators.pop(_parts(name), None)
        operator = _operator(name)
        operator.register_kernel(device_types, function)
        operator.__doc__ = function.__doc__
        return operator

    return register if fn is None else register(fn)


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    schema: str | None = None,
) -> Any:
    """Return a named operator, or a decorator that does, of a function that calls Triton's kernels.

    The derivative is that of the operators in the function, unless `register_autograd` gives
    another. Triton's kernels themselves do not run: a function for the CPU, which
    `register_kernel` or `Library.impl` registers, is called instead.

    Args:
        name, fn, mutates_args, schema: as of `custom_op`.

    Example:
        >>> import plait
        >>> from plait_torch._library import triton_op
        >>> @triton_op("mine::square", mutates_args={})
        ... def square(x: plait.Tensor) -> plait.Tensor:
        ...     return x * x
        >>> x = plait.ones(2, requires_grad=True)
        >>> square(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def register(function: Callable[..., Any]) -> CustomOpDef:
        operator = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        operator._composite = True
        result: CustomOpDef = operator
        return result

    return register if fn is None else register(fn)


def register_fake(op: Any, func: Any = None, /, **options: Any) -> Any:
    """Register the function that is called for tensors on the device meta; without it, return a
    decorator that does."""
    if not isinstance(op, (str, CustomOpDef)):  # an operator of plait's own knows its shapes
        return (lambda function: function) if func is None else func
    register: Callable[..., Any] = _operator(op).register_fake
    return register if func is None else register(func)


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Register an operator's function for all samples of `vmap`; see `CustomOpDef.register_vmap`.

    Example:
        >>> import plait
        >>> from plait_torch._library import custom_op, register_vmap
        >>> @custom_op("mine::triple", mutates_args=())
        ... def triple(x: plait.Tensor) -> plait.Tensor:
        ...     return x * 3
        >>> _ = register_vmap(triple, lambda info, in_dims, x: (triple(x), in_dims[0]))
        >>> plait.vmap(triple)(plait.ones(2, 1)).tolist()
        [[3.0], [3.0]]
    """
    return _operator(op).register_vmap(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Let an operator's calls within `autocast` cast their floating-point tensors to a dtype.

    Example:
        >>> import plait
        >>> from plait_torch._autocast import autocast
        >>> from plait_torch._library import custom_op, register_autocast
        >>> @custom_op("mine::same", mutates_args=())
        ... def same(x: plait.Tensor) -> plait.Tensor:
        ...     return x.clone()
        >>> register_autocast("mine::same", "cpu", plait.bfloat16)
        >>> with autocast("cpu"):
        ...     same(plait.ones(1)).dtype is plait.bfloat16
        True
    """
    _operator(op).register_autocast(device_type, cast_inputs)


def impl_abstract(qualname: str, func: Any = None, *, lib: Any = None) -> Any:
    """Do what `register_fake` does: the older name."""
    return register_fake(qualname, func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None
) -> None:
    """Register the derivative of an operator; see `CustomOpDef.register_autograd`."""
    _operator(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Register an operator's function for a device type."""
    return _operator(op).register_kernel(device_types, func)


def define(qualname: str, schema: str = "", *, lib: Any = None, tags: Any = ()) -> None:
    """Define an operator; its functions are registered afterwards."""
    _operator(qualname)._defined = True


def impl(qualname: str, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Register an operator's function for a device type."""
    return _operator(qualname).register_kernel(types, func)


def opcheck(op: Any, args: Any, kwargs: Any = None, **options: Any) -> dict[str, str]:
    """Call the operator with the arguments, to see whether it raises."""
    op(*args, **(kwargs or {}))
    return {"test_schema": "SUCCESS"}


def get_ctx() -> NoReturn:
    """Raise: PyTorch returns the context of the function of `register_fake` that is running, and
    plait does not call these functions.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "torch.library.get_ctx: it is for functions of `register_fake`, which plait does not call"
    )


class Library:
    """The operators of a namespace: ``define`` names them, ``impl`` gives them functions."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, **options: Any) -> str:
        """Return the name at the beginning of a text such as ``"f(Tensor x) -> Tensor"``."""
        name = schema.partition("(")[0].strip()
        _operator(f"{self.ns}::{name}")._defined = True
        return name

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> None:
        """Register an operator's function; those for the CPU and for all devices are used."""
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if isinstance(op_name, str):
            op_name = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        _operator(op_name).register_kernel(key, fn)


class _Namespace(ModuleType):
    """``torch.ops.namespace``: its operators."""

    def __getattr__(self, name: str) -> Any:
        result = _operators.get((self.__name__, name))
        if result is None or not (result._kernels or result._defined):
            raise AttributeError(
                f"plait_torch: torch.ops.{self.__name__}.{name} is not available; operators of "
                "PyTorch's own are functions of `torch` and of `torch.nn.functional`"
            )
        return result


_OpNamespace = _Namespace


class _Quantized(ModuleType):
    """``torch.ops.quantized``: operators that libraries name in tables, and that refuse calls."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        whole = f"torch.ops.quantized.{name}"
        text = f"{whole}: plait does not have it; {advice('torch.quantize_per_tensor')}"
        self.__dict__[name] = refusing(
            name, lambda: NotImplementedError(text), "Raise NotImplementedError."
        )
        return self.__dict__[name]


class _Inner(ModuleType):
    """``torch.ops.aten``: the inner names of PyTorch's operators."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__[name] = packet(name)
        return self.__dict__[name]


# The binaries whose operators are here, by the file's name: the package in whose folder they lie,
# and the module with functions of the same names.
_BINARIES = {
    "_C": ("torchvision", "plait_torch._torchvision"),
    "image": ("torchvision", "plait_torch._torchvision_images"),
    "_torchaudio": ("torchaudio", "plait_torch._torchaudio"),
    "libtorchaudio": ("torchaudio", "plait_torch._torchaudio"),
}


class _Operators(ModuleType):
    """``torch.ops``: the namespaces of operators."""

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(name, doc)
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        kind = {"aten": _Inner, "quantized": _Quantized}.get(name, _Namespace)
        self.__dict__[name] = kind(name)
        return self.__dict__[name]

    def load_library(self, path: Any) -> None:
        """Register plait's operators for those of a library's binary, which is known by its name.

        Raises:
            OSError: It is another one. Libraries of operators for PyTorch need PyTorch's binary.

        Example:
            >>> from plait_torch._library import ops
            >>> ops.load_library("site-packages/torchvision/_C.so")
            >>> ops.torchvision._cuda_version()
            -1
        """
        file = pathlib.PurePath(path)
        package, module = _BINARIES.get(file.name.partition(".")[0], ("", ""))
        if package not in file.parts[:-1]:
            raise OSError(
                f"torch.ops.load_library: {path} needs PyTorch's binary; operators in C++ are "
                "built for plait with `plait_abi.build`"
            )
        for qualname, function in importlib.import_module(module).OPERATORS.items():
            _operator(qualname).register_kernel("CompositeImplicitAutograd", function)
        self.loaded_libraries.add(str(path))


ops = _Operators("torch.ops", "Operators by name.")
