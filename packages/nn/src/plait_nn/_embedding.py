"""Tables of vectors, and their sums, means and maxima."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F, init
from plait_nn._linear import check_sizes
from plait_nn._module import Module
from plait_nn._parameter import Parameter


class Vectors(Module):
    """A weight with a vector for each number, of which one may be kept at zero."""

    weight: Parameter

    def _set_up(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, sparse: bool
    ) -> None:
        name = type(self).__name__
        check_sizes(name, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(
                f"{name}: `padding_idx` must be in [{-num_embeddings}, {num_embeddings - 1}]; "
                f"got {padding_idx}"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings

    def _add_weight(
        self, weight: Tensor | None, requires_grad: bool, device: Any, dtype: Any
    ) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if weight is None:
            empty = pc.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(empty, requires_grad=requires_grad)
            self.reset_parameters()
            return
        if tuple(weight.shape) != shape:
            raise ValueError(
                f"{type(self).__name__}: `_weight` must have shape {shape}; "
                f"got {tuple(weight.shape)}"
            )
        self.weight = Parameter(weight, requires_grad=requires_grad)

    def reset_parameters(self) -> None:
        """Draw the weight again."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            self.weight.detach().narrow(0, self.padding_idx, 1).zero_()


class Embedding(Vectors):
    """Look vectors up by number; see `plait.nn.functional.embedding`.

    The weight starts normal with mean 0 and variance 1, the row ``padding_idx`` zero.

    Args:
        num_embeddings: Number of vectors.
        embedding_dim: Their size.
        padding_idx: A row that gets no gradient; negative numbers count from the end.
        max_norm: Vectors with a larger norm are scaled down to it when they are looked up.
        norm_type: p of that norm.
        scale_grad_by_freq: Divide each vector's gradient by how often it is looked up.
        sparse: Whether the weight's gradient is a `plait.SparseTensor`, with the rows that were
            looked up alone: for `SparseAdam`, `SGD` and `Adagrad`.
        _weight: An existing weight, or None.
        _freeze: Whether the weight does not require grad.
        device: Where the weight lives.
        dtype: Its dtype; None is float32.

    Attributes:
        weight: Shape (num_embeddings, embedding_dim).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.Embedding(10, 3)(pc.tensor([[1, 2], [4, 5]])).shape)
        (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._set_up(num_embeddings, embedding_dim, padding_idx, sparse)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._add_weight(_weight, not _freeze, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Make a layer of given vectors, shape (num_embeddings, embedding_dim).

        Args:
            embeddings: The table, of shape (number of rows, size of each).
            freeze: Whether it is not trained.
        """
        if embeddings.ndim != 2:
            raise ValueError(
                f"Embedding: `embeddings` must have 2 dimensions; got {tuple(embeddings.shape)}"
            )
        rows, columns = embeddings.shape
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(rows, columns, *options, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return f"{text}, sparse=True" if self.sparse else text


class EmbeddingBag(Vectors):
    """Sums, means or maxima of embeddings; see `plait.nn.functional.embedding_bag`.

    The weight starts normal with mean 0 and variance 1, the row ``padding_idx`` zero.

    Args:
        num_embeddings: Number of vectors.
        embedding_dim: Their size.
        max_norm: Vectors with a larger norm are scaled down to it when they are looked up.
        norm_type: p of that norm.
        scale_grad_by_freq: Divide each vector's gradient by how often it is looked up.
        mode: "mean", "sum" or "max".
        sparse: Whether the weight's gradient is a `plait.SparseTensor`, with the rows that were
            looked up alone; not with mode "max".
        _weight: An existing weight, or None.
        include_last_offset: Whether offsets end with the end of the last bag.
        padding_idx: A row that is ignored.
        device: Where the weight lives.
        dtype: Its dtype; None is float32.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> bags = nn.EmbeddingBag(10, 3, mode="sum")
        >>> tuple(bags(pc.tensor([1, 2, 4, 5]), pc.tensor([0, 3])).shape)
        (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._set_up(num_embeddings, embedding_dim, padding_idx, sparse)
        place = self.__dict__.pop("padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = place
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._add_weight(_weight, True, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Make a layer of given vectors, shape (num_embeddings, embedding_dim).

        Args:
            embeddings: The table, of shape (number of rows, size of each).
            freeze: Whether it is not trained.
            include_last_offset: Whether the offsets end with the number of indices.
        """
        rows, columns = embeddings.shape
        result = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        result.weight.requires_grad_(not freeze)
        return result

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            mode=self.mode,
            sparse=self.sparse,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        usual = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "mode": ""}
        values = {name: getattr(self, name) for name in (*usual, "padding_idx")}
        words = [f"{n}={v!r}" for n, v in values.items() if v != usual.get(n)]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *words])
