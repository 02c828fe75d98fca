"""Calls of a function at other sizes than those of its arguments, which leave no traces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import plait_autograd
import plait_core as pc
from plait_func.pytree import tree_flatten, tree_unflatten
from plait_graph._capture import Recording, is_selecting, new_capture, record, running
from plait_graph._free_sizes import FreeSizes
from plait_graph._optimizers import OptimizerNumbers
from plait_graph._symbolic_size import SizeReads
from plait_graph._templates import Sample

__all__ = ["ResizedCalls", "restored"]


class ResizedCalls:
    """Calls of a function with arguments of other sizes.

    Args:
        function: as `export` gets it.
        args: its arguments.
        kwargs: its named arguments.
        training: whether gradients are recorded.
        dynamic: which sizes are free.

    Attributes:
        dims: the free sizes, by name.
        base: what they are for `args`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        training: bool,
        dynamic: Any,
    ) -> None:
        self._function, self._training = function, training
        self._leaves, self._structure = tree_flatten((args, dict(kwargs)))
        free = FreeSizes(dynamic, "export")
        if free.is_found_by_calls:
            raise ValueError(
                "export: `dynamic` must name the free dimensions, such as {'x': {0: 'batch'}}"
            )
        self._names = free.of(function, args, kwargs)
        self.dims = free.dims
        self.base: dict[str, int] = {}
        for leaf in self._leaves:
            for at, name in self._names.get(id(leaf), {}).items():
                if self.base.setdefault(name, leaf.shape[at]) != leaf.shape[at]:
                    raise ValueError(
                        f"export: the size {name} is {self.base[name]} in one argument and "
                        f"{leaf.shape[at]} in another"
                    )
        for name, size in self.base.items():
            dim = self.dims[name]
            if not (dim.min or 0) <= size <= dim.max:
                raise ValueError(f"export: the size {name} is {size}, which is out of its range")

    def leaves(self, sizes: Mapping[str, int]) -> list[Any]:
        """Return the arguments without their containers; see `arguments`."""
        known: dict[int, pc.Tensor] = {}
        for leaf in self._leaves:
            if isinstance(leaf, pc.Tensor):
                known[id(leaf)] = _resized(leaf, self._names.get(id(leaf), {}), sizes)
        return [known.get(id(leaf), leaf) for leaf in self._leaves]

    def arguments(self, sizes: Mapping[str, int]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with other sizes: their elements are repeated or left out."""
        args, kwargs = tree_unflatten(self.leaves(sizes), self._structure)
        return args, kwargs

    def call(self, sizes: Mapping[str, int]) -> Any:
        """Call the function at sizes."""
        args, kwargs = self.arguments(sizes)
        # operators that a recording takes apart have other roundings than their kernels
        recorder = running(new_capture()) if is_selecting() else contextlib.nullcontext()
        with plait_autograd.set_grad_enabled(self._training), recorder:
            return self._function(*args, **kwargs)

    def is_in_range(self, sizes: Mapping[str, int]) -> bool:
        """Return whether sizes are in the ranges that they must have."""
        return all(
            (1 if self.dims[name].min is None else self.dims[name].min or 0) <= n
            and n <= self.dims[name].max
            for name, n in sizes.items()
        )

    def sample(self, sizes: dict[str, int]) -> Sample:
        """Record a call at sizes."""
        args, kwargs = self.arguments(sizes)
        reads = SizeReads()
        with plait_autograd.set_grad_enabled(self._training):
            _, recording = record(self._function, args, kwargs, differentiate=False, reads=reads)
        OptimizerNumbers(recording)
        recording.capture = None
        return Sample(recording, reads, sizes)


def _resized(tensor: pc.Tensor, names: Mapping[int, str], sizes: Mapping[str, int]) -> pc.Tensor:
    if all(tensor.shape[at] == sizes[name] for at, name in names.items()):
        return tensor
    with plait_autograd.no_grad():
        result = tensor.detach()
        for at, name in names.items():
            places = pc.arange(sizes[name], device=tensor.device) % tensor.shape[at]
            result = result.index_select(at, places)
        if tensor.is_contiguous():  # also if a dimension of size 1 has any stride
            return result.contiguous().requires_grad_(tensor.requires_grad)
        # in the order of dimensions that the tensor has in memory
        strides = tensor.stride()
        order = sorted(range(tensor.ndim), key=lambda at: -strides[at])
        back = sorted(range(tensor.ndim), key=order.__getitem__)
        result = result.permute(order).contiguous().permute(back)
    return result.requires_grad_(tensor.requires_grad)


@contextlib.contextmanager
def restored(recording: Recording, written: Sequence[str]) -> Iterator[None]:
    """Set what the function writes to, and the generator, as they were before.

    Args:
        recording: of the function.
        written: names of tensors that it writes to.
    """
    tensors = [recording.outside[name] for name in written]
    with plait_autograd.no_grad():
        copies = [tensor.detach().clone() for tensor in tensors]
    grads = [(t, t.grad) for t in recording.outside.values() if t.requires_grad and t.is_leaf]
    states = [
        (state, dict(state)) for step in recording.steps for state in step.optimizer.state.values()
    ]
    generator = pc.get_rng_state()
    try:
        yield
    finally:
        with plait_autograd.no_grad():
            for tensor, copy in zip(tensors, copies, strict=True):
                tensor.detach().copy_(copy)
        for tensor, grad in grads:
            tensor.grad = grad
        for state, before in states:
            state.update(before)
        pc.set_rng_state(generator)
