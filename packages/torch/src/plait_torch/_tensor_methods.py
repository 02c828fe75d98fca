"""Methods of `Tensor` for programs written for PyTorch, bound while `torch` means plait."""

from __future__ import annotations

import functools
from typing import Any

import plait
from plait_abi.frames import warn
from plait_core import _core
from plait_torch import _random_arguments
from plait_torch._tensor_hooks import backward_hooks, register_hook
from plait_torch._typed_storages import TypedStorage

__all__ = ["bind", "unbind"]

_MISSING = object()
_before: dict[str, Any] = {}


def type_(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Return the name of the tensor's type, or the tensor in another one.

    Example:
        >>> import plait, plait_torch
        >>> with plait_torch.installed():
        ...     plait.zeros(2).type(), plait.zeros(2).type("torch.LongTensor")
        ('torch.FloatTensor', tensor([0, 0]))
    """
    from plait_torch import _tensor_types as types

    if dtype is None:
        return types.name_of(self)
    result = self.to(types.dtype_of(dtype, "type"))
    # a dtype leaves the tensor where it is
    names_device = isinstance(dtype, (str, types.TensorType))
    return result.to(types.device_of(dtype)) if names_device else result


def new(self: Any, *args: Any, device: Any = None, size: Any = None, other: Any = None) -> Any:
    """Return a tensor of this one's dtype: uninitialised with given sizes, with the values of a
    sequence, or on a storage.

    Example:
        >>> import plait, plait_torch
        >>> with plait_torch.installed():
        ...     plait.zeros(2, dtype=plait.int64).new([3, 4])
        tensor([3, 4])
    """
    args = args or tuple(each for each in (size, other) if each is not None)
    if size is not None:
        args = tuple(size)
    sizes = args[0] if len(args) == 1 and isinstance(args[0], plait.Size) else args
    if all(isinstance(size, int) for size in sizes):
        return plait.empty(sizes or (0,), dtype=self.dtype)
    if len(args) != 1:
        raise TypeError("new: sizes, or one sequence or tensor is required")
    if isinstance(args[0], (plait.UntypedStorage, TypedStorage)):
        whole = args[0].untyped()
        return whole.tensor(self.dtype, 0, (whole.nbytes() // self.element_size(),), (1,))
    if isinstance(args[0], plait.Tensor):
        return args[0].detach().to(self.dtype)
    return plait.tensor(args[0], dtype=self.dtype)


def resize_as(self: Any, tensor: Any) -> Any:
    """Return the tensor in another one's shape, of as many elements; a warning says that it is an
    older form of `reshape`.

    Example:
        >>> import plait, warnings
        >>> from plait_torch._tensor_methods import resize_as
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     resize_as(plait.ones(4), plait.ones(2, 2)).shape
        plait.Size([2, 2])
    """
    warn("non-inplace resize_as is deprecated: use reshape", UserWarning)
    return self.reshape(tensor.shape)


def resize(self: Any, *sizes: Any) -> Any:
    """Return the tensor with another shape of as many elements: an older form of `reshape`."""
    shape = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    warn("non-inplace resize is deprecated: use reshape", UserWarning)
    return self.reshape(tuple(shape))


def storage(self: Any) -> TypedStorage:
    """Return the storage of the tensor, counted in its elements.

    Example:
        >>> import plait, plait_torch
        >>> with plait_torch.installed():
        ...     plait.zeros(2, 3)[0].storage().size()
        6
    """
    return TypedStorage(self)


def _number_first(name: str, tensors: int, word: str) -> Any:
    """Return a method that also accepts the older form, factor first: ``p.add_(-lr, d)``."""
    plain = getattr(plait.Tensor, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == tensors + 1 and not isinstance(args[0], plait.Tensor):
            warn(
                f"This overload of {name} is deprecated:\n\t{name}(number, ...) is "
                f"{name}(..., {word}=number)",
                UserWarning,
            )
            return plain(self, *args[1:], **{word: args[0]})
        return plain(self, *args, **kwargs)

    return functools.wraps(plain)(method)


def lu(self: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """Return ``LU, pivots``; see `plait_torch._functions.lu`."""
    from plait_torch import _functions

    return _functions.lu(self, pivot, get_infos)


def split(self: Any, split_size: Any, dim: int = 0) -> Any:
    """Return parts of one size, or of the sizes of a list, for which PyTorch has one name.

    Example:
        >>> import plait, plait_torch
        >>> with plait_torch.installed():
        ...     [part.tolist() for part in plait.arange(3).split(split_size=[1, 2])]
        [[0], [1, 2]]
    """
    return plait.split(self, split_size, dim)


def __array_wrap__(  # noqa: N807
    self: Any, array: Any, context: Any = None, return_scalar: bool = False
) -> Any:
    """Return the tensor for an array that a NumPy function made of a tensor's values.

    Only functions that ask for it do so, such as `cumsum`: others, such as `stack`, return arrays.
    """
    return plait.as_tensor(array) if array.dtype.kind in "biufc" else array


def _ufunc_method(plain: Any) -> Any:
    """Return `__array_ufunc__` for which ``outer`` returns an array, as PyTorch's does."""

    def __array_ufunc__(self: Any, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        result = plain(self, ufunc, method, *args, **kwargs)
        return result.numpy() if method == "outer" and hasattr(result, "numpy") else result

    return functools.wraps(plain)(__array_ufunc__)


def _with_numpy_keywords(name: str) -> Any:
    """Return `max` or `min`, which NumPy's function of that name calls with `axis` and `out`, and
    which then returns values without indices. Methods of PyTorch have no `out`.
    """
    plain, values = getattr(plait.Tensor, name), getattr(plait.Tensor, f"a{name}")

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "out" not in kwargs:
            return plain(self, *args, **kwargs)
        axis, out = kwargs.pop("axis", None), kwargs.pop("out")
        result = values(self, () if axis is None else axis, *args, **kwargs)
        if out is None:
            return result
        (out,) = out if isinstance(out, tuple) else (out,)
        if tuple(out.shape) != tuple(result.shape):
            raise ValueError(
                f"{name}: `out` must have shape {tuple(result.shape)}; got {tuple(out.shape)}"
            )
        target = out if isinstance(out, plait.Tensor) else plait.from_numpy(out)
        if not plait.can_cast(result.dtype, target.dtype):
            raise TypeError(f"{name}: `out` of {target.dtype} cannot take values of {result.dtype}")
        target[...] = result
        return out

    return functools.wraps(plain)(method)


def _with_byte_masks(name: str) -> Any:
    """Return a method that takes indices of uint8 as masks, as ``x[mask]`` does."""
    plain = getattr(plait.Tensor, name)

    def method(self: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
        return plain(self, _masks_of(indices), *args, **kwargs)

    return functools.wraps(plain)(method)


def _with_several_dims(name: str) -> Any:
    """Return a method that takes dims one by one too: ``x.count_nonzero(0, 1)``."""
    plain = getattr(plait.Tensor, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        several = len(args) > 1 and all(type(each) is int for each in args)
        return plain(self, args, **kwargs) if several else plain(self, *args, **kwargs)

    return functools.wraps(plain)(method)


def _masks_of(indices: Any) -> Any:
    def is_mask(index: Any) -> bool:
        return isinstance(index, plait.Tensor) and index.dtype is plait.uint8

    if not isinstance(indices, (tuple, list)) or not any(map(is_mask, indices)):
        return indices
    return [index.bool() if is_mask(index) else index for index in indices]


def _is_on(kind: str) -> Any:
    doc = f"Whether the tensor is on a device of the type {kind}."
    return property(lambda self: self.device.type == kind, doc=doc)


def _set_grad(self: Any, value: Any) -> None:
    self.grad = value


# PyTorch's other names of public attributes and methods
_OTHER_NAMES = {
    "_conj": lambda self: self.conj(),
    "_conj_physical": lambda self: self.conj_physical(),
    "_fix_weakref": lambda self: None,  # a weak reference needs no care here
    "_grad": property(lambda self: self.grad, _set_grad),
    "_grad_fn": property(lambda self: self.grad_fn),
    "_has_symbolic_sizes_strides": property(lambda self: False),
    "_is_all_true": lambda self: self.all(),
    "_is_any_true": lambda self: self.any(),
    "_is_zerotensor": lambda self: False,
}
# types of devices about which programs ask each tensor
_DEVICES = ("hpu", "ipu", "maia", "mtia", "vulkan", "xla", "xpu")
_METHODS = {"__array_wrap__": __array_wrap__,
            "_backward_hooks": property(backward_hooks), "register_hook": register_hook,
            "_cdata": property(id),  # a number that no other living tensor has
            "lu": lu, "new": new, "resize": resize, "resize_as": resize_as, "split": split,
            "storage": storage, "_typed_storage": storage, "type": type_,
            **{f"is_{kind}": _is_on(kind) for kind in _DEVICES}, **_OTHER_NAMES}  # fmt: skip
# methods with a factor: the number of tensors, and the name of the factor
_FACTORS = {
    **dict.fromkeys(("add", "add_", "sub", "sub_"), (1, "alpha")),
    **dict.fromkeys(("addcdiv", "addcdiv_", "addcmul", "addcmul_"), (2, "value")),
}


# methods that PyTorch's tensors do not have, and NumPy's functions would use
_ABSENT = ("__array_function__",)


def bind() -> None:
    """Bind the methods to plait's `Tensor`, and remove what PyTorch's do not have."""
    older = {name: _number_first(name, *each) for name, each in _FACTORS.items()}
    masked = {name: _with_byte_masks(name) for name in ("index_put", "index_put_")}
    ufuncs = {"__array_ufunc__": _ufunc_method(plait.Tensor.__array_ufunc__)}
    extremes = {name: _with_numpy_keywords(name) for name in ("max", "min")}
    draws = _random_arguments.METHODS
    counts = {"count_nonzero": _with_several_dims("count_nonzero")}
    groups = (_METHODS, older, masked, ufuncs, extremes, draws, counts)
    for name, method in {k: v for group in groups for k, v in group.items()}.items():
        _before[name] = plait.Tensor.__dict__.get(name, _MISSING)
        setattr(plait.Tensor, name, method)
    for name in _ABSENT:
        _before[name] = plait.Tensor.__dict__[name]
        delattr(plait.Tensor, name)
    _core._set_pytorch_keys(True)


def unbind() -> None:
    """Restore the methods before `bind`."""
    for name, method in _before.items():
        if method is _MISSING:
            delattr(plait.Tensor, name)
        else:
            setattr(plait.Tensor, name, method)
    _before.clear()
    _core._set_pytorch_keys(False)
