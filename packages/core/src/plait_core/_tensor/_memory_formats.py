"""Memory formats and layouts: the orders that the elements of a tensor may have in memory."""

from __future__ import annotations

from typing import Any

from plait_abi import binding


class _Constant(str):
    """A constant that equals its name as a string."""

    __slots__ = ()

    def __new__(cls, name: str) -> _Constant:
        return super().__new__(cls, name.name if isinstance(name, _Constant) else name)

    @property
    def name(self) -> str:
        """The name as a string."""
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"{binding.shown_module()}.{self.name}"

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return format(self.name, form)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return self.name


class memory_format(_Constant):  # noqa: N801
    """An order of the dimensions in memory; `plait_core` has a constant for each.

    A tensor has no attribute for its format: its strides give the order of its elements.

    Args:
        name: The name.

    Example:
        >>> import plait_core as pc
        >>> x = pc.zeros(2, 3, 4, 5).contiguous(memory_format=pc.channels_last)
        >>> x.stride(), x.is_contiguous(memory_format=pc.channels_last)
        ((60, 1, 15, 3), True)
    """

    __slots__ = ()


class layout(_Constant):  # noqa: N801
    """The way in which a tensor stores its elements: `strided`, `sparse_coo` for a `SparseTensor`,
    or one of `sparse_csr`, `sparse_csc`, `sparse_bsr` and `sparse_bsc` for a `CompressedTensor`.

    Args:
        name: The name.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(2).layout, pc.eye(2).to_sparse().layout
        (plait.strided, plait.sparse_coo)
    """

    __slots__ = ()


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
