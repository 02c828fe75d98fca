"""`torch.return_types`: the classes of results with names, such as those of ``max(x, dim)``.

Operators make these classes at their first call, so that a class is found by a call.
"""

from __future__ import annotations

from typing import Any

import plait
from plait import linalg
from plait.func.pytree import SUPPORTED_NODES, is_structseq_class, tree_is_leaf

_ALONG = (
    "cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk",
)  # fmt: skip
_OF_MATRIX = ("geqrf", "qr", "slogdet", "svd")
_OF_LINALG = (
    "cholesky_ex", "eig", "eigh", "inv_ex", "ldl_factor", "ldl_factor_ex", "lu", "lu_factor",
    "lu_factor_ex", "qr", "slogdet", "svd",
)  # fmt: skip
_OTHERS = ("aminmax", "frexp", "histogram", "linalg_lstsq", "linalg_solve_ex", "lu_unpack",
           "triangular_solve")  # fmt: skip
_NAMES = (*_ALONG, *_OF_MATRIX, *(f"linalg_{name}" for name in _OF_LINALG), *_OTHERS)

__all__ = [  # noqa: PLE0604 - names of tables
    *_NAMES,
    "all_return_types",
    "pytree_register_structseq",
]


all_return_types: list[type[Any]]  # made at the first access


def _call(name: str) -> Any:
    """Return a result of the class's function."""
    matrix = plait.eye(2)
    if name in _ALONG:
        # the numbers of elements of topk and kthvalue, the dimension of the others
        return getattr(plait, name)(matrix, 1)
    if name in _OF_MATRIX or name in ("aminmax", "frexp"):
        return getattr(plait, name)(matrix)
    if name == "histogram":
        return plait.histogram(matrix, 2)
    if name == "lu_unpack":
        return plait.lu_unpack(*linalg.lu_factor(matrix))
    if name == "triangular_solve":
        return plait.triangular_solve(matrix, matrix)
    function = getattr(linalg, name.removeprefix("linalg_"))
    return function(matrix, matrix) if name in _OTHERS else function(matrix)


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return [__getattr__(each) for each in _NAMES]
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with plait.no_grad(), plait.device("cpu"):
        result = _call(name)
    tree_is_leaf(result)  # now it is a container of `torch.utils._pytree`
    return type(result)


def pytree_register_structseq(cls: type[Any]) -> None:
    """Do nothing: classes of results are containers of `torch.utils._pytree` as they are.

    Raises:
        TypeError: for another class.

    Example:
        >>> import plait_torch
        >>> from plait_torch._return_types import pytree_register_structseq
        >>> with plait_torch.installed():
        ...     import torch
        >>> pytree_register_structseq(torch.return_types.max)
    """
    if cls not in SUPPORTED_NODES and not is_structseq_class(cls):
        raise TypeError(f"pytree_register_structseq: a class of results is required; got {cls!r}")
