"""`functional_call`: a module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from plait_core import Tensor
from plait_nn._module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors instead of its parameters and buffers.

    Gradients flow to the given tensors. The module is unchanged after the call, except for buffers
    that the call writes to, such as a running mean, if they were not replaced.

    Args:
        module: The module.
        parameter_and_buffer_dicts: Tensors by dotted name, or several such mappings.
        args: The arguments of the call, a tuple or a single argument.
        kwargs: The keyword arguments of the call.
        tie_weights: Whether a tensor that has several names is replaced under all of them.
        strict: Whether every parameter and buffer must be given.

    Raises:
        KeyError: A name is not one of the module's, is given twice, or (``strict``) is missing.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Linear(1, 1)
        >>> given = {"weight": pc.tensor([[2.0]]), "bias": pc.tensor([1.0])}
        >>> nn.functional_call(layer, given, pc.tensor([3.0]))
        tensor([7.])
    """
    dicts = parameter_and_buffer_dicts
    given: dict[str, Tensor] = {}
    for each in [dicts] if isinstance(dicts, Mapping) else dicts:
        twice = given.keys() & each.keys()
        if twice:
            raise KeyError(f"functional_call: `{min(twice)}` is given twice")
        given.update(each)
    positional = args if isinstance(args, tuple) else () if args is None else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


@contextmanager
def _replaced(
    module: Module, given: Mapping[str, Tensor], tie_weights: bool, strict: bool
) -> Iterator[None]:
    """Set the tensors, and restore the module's own at the end."""
    owners: dict[str, tuple[dict[str, Any], str]] = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for kind in ("_parameters", "_buffers"):
            members = getattr(owner, kind)
            for name, member in members.items():
                if member is not None:
                    owners[f"{path}.{name}" if path else name] = (members, name)
    unknown = [name for name in given if name not in owners]
    wanted = dict(given)
    if tie_weights:
        tensors = {
            id(owners[name][0][owners[name][1]]): given[name] for name in given if name in owners
        }
        for name, (members, key) in owners.items():
            if id(members[key]) in tensors:
                wanted.setdefault(name, tensors[id(members[key])])
    missing = [name for name in owners if name not in wanted] if strict else []
    if unknown or missing:
        raise KeyError(
            f"functional_call: names must be those of {type(module).__name__}; unknown: {unknown}, "
            f"missing: {missing}"
        )
    before = [(*owners[name], owners[name][0][owners[name][1]]) for name in wanted]
    try:
        for name, tensor in wanted.items():
            members, key = owners[name]
            members[key] = tensor
        yield
    finally:
        for members, key, tensor in before:
            members[key] = tensor
