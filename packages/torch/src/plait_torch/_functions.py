"""Functions of `torch` that plait has in other modules, and older names."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import plait
import plait.nn.functional as F
from plait import linalg
from plait_abi import operator
from plait_torch._random_arguments import normal
from plait_torch._tensor_arguments import require_tensor
from plait_torch._typed_storages import TypedStorage

# PyTorch has these both in `torch` and in `torch.nn.functional`, with the same arguments
_OF_FUNCTIONAL = (
    "adaptive_avg_pool1d",
    "avg_pool1d",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "pixel_shuffle",
    "pixel_unshuffle",
    "rms_norm",
)

# operators that are parts of others in plait and functions in PyTorch, with the same arguments
_PARTS = ("_standard_gamma",)

__all__ = [  # noqa: PLE0604 - names of a table
    *_OF_FUNCTIONAL,
    *_PARTS,
    "_sample_dirichlet",
    "_segment_reduce",
    "constant_pad_nd",
    "dropout_",
    "dsmm",
    "fill",
    "frobenius_norm",
    "get_device",
    "hspmm",
    "index_put",
    "index_put_",
    "is_neg",
    "is_signed",
    "is_storage",
    "lu",
    "native_dropout",
    "normal",
    "nuclear_norm",
    "pca_lowrank",
    "range",
    "resolve_neg",
    "smm",
    "spmm",
    "svd_lowrank",
    "to_dlpack",
]

for _name in _OF_FUNCTIONAL:
    if hasattr(F, _name):
        globals()[_name] = getattr(F, _name)
    else:
        __all__.remove(_name)
globals().update({_name: operator(_name) for _name in _PARTS})


def range(start: float = 0, end: float | None = None, step: float = 1, **options: Any) -> Any:
    """Return ``start, start + step, ...`` up to and with `end`, in floats: an older `arange`.

    Example:
        >>> from plait_torch import _functions
        >>> _functions.range(1, 3)
        tensor([1., 2., 3.])
    """
    first, last = (0, start) if end is None else (start, end)
    count = int((last - first) / step) + 1
    options.setdefault("dtype", plait.get_default_dtype())
    out = plait.arange(count, dtype=plait.float64) * step + first
    return out.to(options.pop("dtype")).requires_grad_(options.pop("requires_grad", False))


def constant_pad_nd(input: Any, pad: Any, value: float = 0.0) -> Any:
    """Return the tensor padded with a constant value; see ``nn.functional.pad``."""
    return F.pad(input, tuple(pad), "constant", value)


def dropout_(input: Any, p: float, train: bool) -> Any:
    """Zero elements with probability `p`, in place."""
    return F.dropout(input, p, train, inplace=True)


def native_dropout(input: Any, p: float, train: bool | None = None) -> Any:
    """Return the input after dropout and the mask of the elements that stay; `train` False keeps
    all.

    Example:
        >>> import plait
        >>> from plait_torch._functions import native_dropout
        >>> native_dropout(plait.ones(2), 0.5, False)[1]
        tensor([True, True])
    """
    return plait.native_dropout(input, p if train is not False else 0.0)


def fill(input: Any, value: Any) -> Any:
    """Return a tensor of the input's shape and dtype that holds one value."""
    return plait.full_like(input, value) if not plait.is_tensor(value) else (
        plait.empty_like(input).fill_(value)
    )  # fmt: skip


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return the method's result: the method takes indices of uint8 as masks."""
    return input.index_put(indices, values, accumulate)


def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return the method's result, in place: the method takes indices of uint8 as masks."""
    return input.index_put_(indices, values, accumulate)


def is_signed(input: Any) -> bool:
    """Return whether the dtype has negative numbers."""
    require_tensor("is_signed", "input", input)
    return bool(input.dtype.is_signed)


def is_neg(input: Any) -> bool:
    """Return False: negation is computed at once."""
    require_tensor("is_neg", "input", input)
    return False


def resolve_neg(input: Any) -> Any:
    """Return the tensor: negation is computed at once."""
    return input


def is_storage(obj: Any) -> bool:
    """Return whether the object is a storage."""
    return isinstance(obj, (plait.UntypedStorage, TypedStorage))


def get_device(input: Any) -> int:
    """Return -1, the index of the CPU."""
    return -1


def to_dlpack(tensor: Any) -> Any:
    """Return a capsule that ``from_dlpack`` of another library reads."""
    require_tensor("to_dlpack", "tensor", tensor)
    return tensor.__dlpack__()


def lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """Return ``LU, pivots``, an older form of `linalg.lu_factor`; with ``get_infos`` also infos.

    Example:
        >>> import plait
        >>> from plait_torch._functions import lu
        >>> LU, pivots = lu(plait.tensor([[2.0, 0.0], [4.0, 1.0]]))
        >>> pivots.tolist()
        [2, 2]
    """
    if out is not None:
        raise NotImplementedError("lu: `out` is not available; use linalg.lu_factor")
    if get_infos:
        return tuple(linalg.lu_factor_ex(A, pivot=pivot))
    return tuple(linalg.lu_factor(A, pivot=pivot))


def frobenius_norm(input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the root of the sum of squares."""
    return linalg.vector_norm(input, 2, None if dim == () else dim, keepdim, out=out)


def nuclear_norm(input: Any, dim: Any = (-2, -1), keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the sum of a matrix's singular values; `dim` names the two dimensions of matrices.

    Example:
        >>> import plait
        >>> from plait_torch._functions import nuclear_norm
        >>> nuclear_norm(plait.eye(3)).item()
        3.0
    """
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    return linalg.matrix_norm(input, "nuc", tuple(dim), keepdim, out=out)


def spmm(input: Any, mat2: Any) -> Any:
    """Return the product of a sparse matrix and another: ``torch.sparse.mm``."""
    return plait.sparse.mm(input, mat2)


_sample_dirichlet = operator("dirichlet_sample")
_segment_reduce = plait.segment_reduce
dsmm = hspmm = smm = spmm


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """Return the `q` largest singular values and their vectors, ``(U, S, V)``, nearly.

    The rows are projected to a basis of `q` vectors that `niter` steps of subspace iteration find
    from random ones (Halko, Martinsson and Tropp 2009, "Finding structure with randomness").

    Args:
        A: (\\*, m, n).
        q: a little more than the rank of `A`; at most ``min(m, n)``.
        niter: steps of the iteration.
        M: is subtracted from `A`; None for nothing.

    Example:
        >>> import plait
        >>> from plait_torch._functions import svd_lowrank
        >>> U, S, V = svd_lowrank(plait.eye(3) * plait.tensor([3.0, 2.0, 0.0]), q=2)
        >>> bool((S - plait.tensor([3.0, 2.0])).abs().max() < 1e-5)
        True
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    rest = A if M is None else A - M
    is_wide = rest.shape[-2] < rest.shape[-1]
    tall = rest.mH if is_wide else rest
    start = plait.randn(tall.shape[-1], q, dtype=A.dtype, device=A.device)
    basis = linalg.qr(tall @ start)[0]
    for _ in repeat(None, niter):
        basis = linalg.qr(tall @ linalg.qr(tall.mH @ basis)[0])[0]
    U, S, Vh = linalg.svd(basis.mH @ tall, full_matrices=False)
    return (Vh.mH, S, basis @ U) if is_wide else (basis @ U, S, Vh.mH)


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """Return the `q` principal components of rows, ``(U, S, V)``; see `svd_lowrank`."""
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True) if center else A, q, niter)
