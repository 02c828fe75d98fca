"""`torch.nn.attention.flex_attention`: attention whose scores and mask are functions of positions.

PyTorch compiles the functions into one kernel that skips masked blocks. Here they are called once,
with all positions as tensors that broadcast, and the whole attention is computed. Values and
derivatives are the same, but no time is saved.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import plait

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "_DEFAULT_SPARSE_BLOCK_SIZE",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]


_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """The additional results that `flex_attention` returns."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The additional results of an `AuxRequest`; others are None."""

    lse: Any = None
    max_scores: Any = None


def _positions(*sizes: int) -> list[Any]:
    """Return tensors of positions, each along its own dimension."""
    return [
        plait.arange(size).reshape([-1 if i == dim else 1 for i in range(len(sizes))])
        for dim, size in enumerate(sizes)
    ]


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """Return True: nothing is masked."""
    return batch.new_ones((), dtype=plait.bool) if plait.is_tensor(batch) else plait.tensor(True)


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return a mask function that is true where all functions are."""
    return lambda *at: reduce(operator.and_, [each(*at) for each in mask_mods])


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return a mask function that is true where any of the functions is."""
    return lambda *at: reduce(operator.or_, [each(*at) for each in mask_mods])


def _of_blocks(counts: Any, indices: Any, block: tuple[int, int], lengths: tuple[int, int]) -> Any:
    """Return bools ``(B, H, queries, keys)``, True within the first blocks of each row's list."""
    while indices.dim() < 4:
        indices, counts = indices[None], counts[None]
    columns = indices.shape[-1]
    wide = max(columns, -(-lengths[1] // block[1]))
    listed = plait.arange(columns) < counts[..., None]
    # what is not listed is written to a column behind the last
    choice = plait.where(listed, indices.to(plait.int64), wide)
    dense = plait.zeros((*indices.shape[:-1], wide + 1), dtype=plait.bool)
    dense = dense.scatter(-1, choice, True)[..., :wide]
    pairs = dense.repeat_interleave(block[0], dim=-2).repeat_interleave(block[1], dim=-1)
    return pairs[..., : lengths[0], : lengths[1]]


class BlockMask:
    """A mask of pairs of positions, the result of `create_block_mask`.

    Attributes:
        mask_mod: the function that was given.
        seq_lengths: the lengths of queries and keys.
        shape: ``(B, H, Q_LEN, KV_LEN)``.
    """

    def __init__(self, mask: Any, mask_mod: Callable[..., Any], block: tuple[int, int]) -> None:
        self._mask, self.mask_mod, self.BLOCK_SIZE = mask, mask_mod, block
        self.shape = tuple(mask.shape)
        self.seq_lengths = self.shape[-2:]

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Any,
        kv_indices: Any,
        full_kv_num_blocks: Any = None,
        full_kv_indices: Any = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable[..., Any] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """Return a mask from the blocks that each row of blocks attends to.

        Args:
            kv_num_blocks: how many of `kv_indices` count, of shape ``(B, H, rows)``.
            kv_indices: the blocks in which `mask_mod` is called, ``(B, H, rows, columns)``.
            full_kv_num_blocks, full_kv_indices: blocks that are attended to as a whole.
            BLOCK_SIZE: the sizes of a block.
            mask_mod: the function for pairs; None masks none.
            seq_lengths: the lengths of queries and keys; None is that of all blocks.
            compute_q_blocks: has no effect.

        Raises:
            RuntimeError: if `kv_indices` has less than two dimensions.
            ValueError: if one of the two arguments for full blocks is missing.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError(
                "BlockMask.from_kv_blocks: `kv_indices` must have at least 2 dimensions, got "
                f"{tuple(kv_indices.shape)}"
            )
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise ValueError(
                "BlockMask.from_kv_blocks: `full_kv_num_blocks` and `full_kv_indices` must be "
                "both given or both None"
            )
        block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        rows, columns = kv_indices.shape[-2:]
        lengths = seq_lengths or (rows * block[0], columns * block[1])
        mask = _of_blocks(kv_num_blocks, kv_indices, block, lengths)
        if mask_mod is not None:
            mask = mask & mask_mod(*_positions(*mask.shape))
        if full_kv_num_blocks is not None:
            mask = mask | _of_blocks(full_kv_num_blocks, full_kv_indices, block, lengths)
        return cls(mask, mask_mod or noop_mask, block)

    def numel(self) -> int:
        """Return the number of pairs of positions."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the percentage of pairs that are masked."""
        return 100.0 * (1.0 - float(self._mask.double().mean()))

    def to_dense(self) -> Any:
        """Return 1 for blocks with a pair that is not masked, else 0."""
        rows, columns = self.BLOCK_SIZE
        batch, heads, queries, keys = self.shape
        padded = plait.nn.functional.pad(
            self._mask.to(plait.int32), (0, -keys % columns, 0, -queries % rows)
        )
        high, wide = -(-queries // rows), -(-keys // columns)
        blocks = padded.reshape(batch, heads, high, rows, wide, columns)
        return blocks.amax(dim=(3, 5))

    def to(self, device: Any) -> BlockMask:
        """Return the mask itself: it is on the CPU."""
        return self

    def __getitem__(self, index: Any) -> BlockMask:
        result = self._mask[index]
        while result.dim() < 4:
            result = result[None]
        return BlockMask(result, self.mask_mod, self.BLOCK_SIZE)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_mask(
    mod_fn: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    **options: Any,
) -> Any:
    """Return the values of a mask function as bools ``(B, H, Q_LEN, KV_LEN)``; None is 1.

    Example:
        >>> from plait_torch._flex_attention import create_mask
        >>> create_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 2)[0, 0]
        tensor([[ True, False],
                [ True,  True]])
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*_positions(*sizes)).to(plait.bool).expand(sizes)


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: Any = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    **options: Any,
) -> BlockMask:
    """Return a mask for `flex_attention`.

    Args:
        mask_mod: a function of ``(b, h, q, kv)`` that returns whether `q` attends to `kv`. It is
        called once, with tensors that broadcast. B, H: the numbers of batches and heads; None: the
        mask does not depend on them. Q_LEN, KV_LEN: the lengths. device, _compile: have no effect.
        BLOCK_SIZE: the size of the blocks that ``to_dense`` shows.

    Example:
        >>> from plait_torch._flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4)
        BlockMask(shape=(1, 1, 4, 4), sparsity=37.50%)
    """
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    return BlockMask(create_mask(mask_mod, B, H, Q_LEN, KV_LEN), mask_mod, block)


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return ``softmax(score_mod(query @ key.mT * scale)) @ value``.

    Args:
        query: ``(B, Hq, L, E)``.
        key: ``(B, Hkv, S, E)``.
        value: ``(B, Hkv, S, Ev)``.
        score_mod: an elementwise function from ``(score, b, h, q, kv)`` to the modified score. It
            is called once, with all scores and tensors of positions that broadcast to them.
        block_mask: a result of `create_block_mask`; a query without keys gives zeros.
        scale: None is ``1 / sqrt(E)``.
        enable_gqa: whether several heads of queries share one of keys.
        return_lse: also return the logarithms of the sums of exponentials.
        kernel_options: has no effect.
        return_aux: an `AuxRequest`; then an `AuxOutput` is returned as well.

    Raises:
        ValueError: unless there are four dimensions, and for numbers of heads that do not fit.

    Example:
        >>> import plait
        >>> from plait_torch._flex_attention import flex_attention
        >>> q = plait.ones(1, 1, 2, 2)
        >>> v = plait.tensor([[[[0.0], [4.0]]]])
        >>> flex_attention(q, q, v, lambda s, b, h, q, kv: plait.where(q >= kv, s, -plait.inf))
        tensor([[[[0.],
                  [2.]]]])
    """
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ValueError(
            "flex_attention: query, key and value of 4 dimensions are required, got "
            f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
        )
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared:
        if not enable_gqa or heads % shared:
            raise ValueError(
                f"flex_attention: {heads} heads of queries do not fit {shared} of keys"
                + ("" if enable_gqa else "; `enable_gqa=True` shares them")
            )
        key = key.repeat_interleave(heads // shared, 1)
        value = value.repeat_interleave(heads // shared, 1)
    scores = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *_positions(*scores.shape)).to(scores.dtype)
    if block_mask is not None:
        mask = block_mask._mask[..., : scores.shape[-2], : scores.shape[-1]]
        scores = scores.masked_fill(~mask, -math.inf)
    lse = scores.logsumexp(-1)
    # the softmax of completely masked rows would be nan
    empty = (lse == -math.inf)[..., None]
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    out = weights @ value
    if return_aux is not None:
        largest = scores.amax(-1) if return_aux.max_scores else None
        return out, AuxOutput(lse if return_aux.lse else None, largest)
    return (out, lse) if return_lse else out
