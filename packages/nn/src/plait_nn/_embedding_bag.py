"""`EmbeddingBag`."""

from __future__ import annotations

from typing import Any

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._embedding import Vectors

__all__ = ["EmbeddingBag"]


class EmbeddingBag(Vectors):
    """Sums, means or maxima of embeddings; see `plait_nn.functional.embedding_bag`.

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
        """Make a layer of given vectors, shape (num_embeddings, embedding_dim)."""
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
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
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
        text = f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
