"""The inner functions of `torch.autograd.functional`, from which libraries make their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait

__all__: list[str] = []

Tensors = tuple[Any, ...]


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """Return whether a value is a tuple, and its tensors as a tuple.

    Without names for the error, the value is not checked.
    """
    many = isinstance(inp, tuple)
    values = inp if many else (inp,)
    if arg_name is None and fn_name is None:
        return values
    for i, each in enumerate(values):
        if not isinstance(each, plait.Tensor):
            what = f"value at index {i}" if many else f"given {arg_name}"
            raise TypeError(
                f"The {arg_name} given to {fn_name} must be either a Tensor or a tuple of Tensors "
                f"but the {what} has type {type(each)}."
            )
    return many, values


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    """Return the one value of a tuple, where a single tensor had been given.

    Args:
        res: a tuple, or a tuple of tuples if `to_unpack` is one.
        to_unpack: whether several had been given, at each of the levels.
    """
    if not isinstance(to_unpack, tuple):
        return res if to_unpack else res[0]
    outer, inner = to_unpack
    rows = res if inner else tuple(row[0] for row in res)
    return rows if outer else rows[0]


def _grad_preprocess(inputs: Sequence[Any], create_graph: bool, need_graph: bool) -> Tensors:
    """Return new tensors to differentiate for; with `create_graph` they depend on the given."""

    def fresh(x: Any) -> Any:
        if not isinstance(x, plait.Tensor):
            return _grad_preprocess(x, create_graph, need_graph)
        if create_graph and x.requires_grad:
            return x if x.is_sparse else x.view_as(x)
        return x.detach().requires_grad_(need_graph)

    return tuple(fresh(each) for each in inputs)


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Return the tensors of a tuple, or of a tuple of tuples, detached without `create_graph`."""
    if create_graph:
        return inputs
    if isinstance(inputs, plait.Tensor):
        return inputs.detach()
    return tuple(_grad_postprocess(each, create_graph) for each in inputs)


def _construct_standard_basis_for(tensors: Tensors, tensor_numels: tuple[int, ...]) -> Tensors:
    r"""Return the unit vectors of the space of several tensors together.

    Result k has a row for each element of all tensors, and the columns of tensor k: a one where
    the row is that of the column's element. For tensors of 2 and 3 elements that is the identity
    of 5 rows, cut into its first 2 and its last 3 columns.

    Example:
        >>> import plait
        >>> from plait_torch._autograd_functional import _construct_standard_basis_for
        >>> first, second = _construct_standard_basis_for((plait.ones(1), plait.ones(2)), (1, 2))
        >>> first.tolist(), second.tolist()
        ([[1.0], [0.0], [0.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    """
    if len(tensors) != len(tensor_numels) or not tensors:
        raise AssertionError(
            f"_construct_standard_basis_for: one or more tensors with a number each are required; "
            f"got {len(tensors)} and {len(tensor_numels)}"
        )
    rows, offset, result = sum(tensor_numels), 0, []
    for tensor, size in zip(tensors, tensor_numels, strict=True):
        basis = plait.zeros(rows, size, dtype=tensor.dtype, device=tensor.device)
        basis.diagonal(-offset).fill_(1)
        offset += size
        result.append(basis)
    return tuple(result)
