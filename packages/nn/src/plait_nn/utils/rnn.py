"""Sequences of different lengths: padded into one tensor, or packed without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import plait_core as pc
from plait_core import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    r"""Sequences step by step, longest first: all first elements, then all second ones, ...

    `pack_padded_sequence` and `pack_sequence` make them, `RNN`, `LSTM` and `GRU` take them.

    Attributes:
        data: Shape (sum of lengths, \*).
        batch_sizes: The number of sequences with a first element, with a second, ...
        sorted_indices: The caller's index of each sequence; None: in order.
        unsorted_indices: The inverse.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> packed = nn.utils.rnn.pack_sequence([pc.tensor([1, 2, 3]), pc.tensor([4])])
        >>> packed.data.tolist(), packed.batch_sizes.tolist()
        ([1, 4, 2, 3], [2, 1, 1])
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:  # a pair is accepted too
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data as ``Tensor.to`` does."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move the data to a CUDA device; it is an error if there is none."""
        return self._replace(data=self.data.cuda(*args, **kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move the data to the CPU."""
        return self.to("cpu", *args, **kwargs)

    def is_pinned(self) -> bool:
        """Return whether the data is in memory that devices read directly."""
        return bool(self.data.is_pinned())

    def pin_memory(self) -> PackedSequence:
        """Move the data to memory that devices read directly."""
        return self._replace(data=self.data.pin_memory())

    def double(self) -> PackedSequence:
        """Convert the data to float64."""
        return self.to(dtype=pc.float64)

    def float(self) -> PackedSequence:
        """Convert the data to float32."""
        return self.to(dtype=pc.float32)

    def half(self) -> PackedSequence:
        """Convert the data to float16."""
        return self.to(dtype=pc.float16)

    def long(self) -> PackedSequence:
        """Convert the data to int64."""
        return self.to(dtype=pc.int64)

    def int(self) -> PackedSequence:
        """Convert the data to int32."""
        return self.to(dtype=pc.int32)

    def short(self) -> PackedSequence:
        """Convert the data to int16."""
        return self.to(dtype=pc.int16)

    def char(self) -> PackedSequence:
        """Convert the data to int8."""
        return self.to(dtype=pc.int8)

    def byte(self) -> PackedSequence:
        """Convert the data to uint8."""
        return self.to(dtype=pc.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data lives on a CUDA device."""
        return bool(self.data.is_cuda)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes one; None of None.

    Args:
        permutation: The numbers 0 to n - 1 in some order, or None.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.utils.rnn.invert_permutation(pc.tensor([2, 0, 1])).tolist()
        [1, 2, 0]
    """
    return None if permutation is None else permutation.argsort()


def _positions(batch_sizes: list[int], width: int, device: Any) -> Tensor:
    """Return the index of each packed element in a padded tensor (T * width)."""
    rows = [t * width + i for t, size in enumerate(batch_sizes) for i in range(size)]
    return pc.tensor(rows, dtype=pc.int64, device=device)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    r"""Pack sequences that were padded to one length.

    Args:
        input: Shape (T, N, \*), or (N, T, \\*) with ``batch_first``.
        lengths: The N lengths, each from 1 to T.
        batch_first: Whether the batch comes first.
        enforce_sorted: Raise unless the lengths are in decreasing order; False sorts them.

    Raises:
        ValueError: The lengths don't fit, or are not sorted in decreasing order.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([[1, 2, 0], [3, 4, 5]])
        >>> packed = nn.utils.rnn.pack_padded_sequence(x, [2, 3], True, enforce_sorted=False)
        >>> packed.data.tolist(), packed.sorted_indices.tolist()
        ([3, 1, 4, 2, 5], [1, 0])
    """
    steps = input.transpose(0, 1) if batch_first else input
    counts = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    times, batch = steps.shape[0], steps.shape[1]
    if len(counts) != batch or min(counts, default=0) < 1 or max(counts) > times:
        raise pc.ArgumentError(
            f"pack_padded_sequence: `lengths` must be {batch} numbers from 1 to {times} for input "
            f"{tuple(input.shape)}; got {counts}"
        )
    order = None
    if enforce_sorted:
        if counts != sorted(counts, reverse=True):
            raise pc.ArgumentError(
                f"pack_padded_sequence: `lengths` must fall unless enforce_sorted=False; "
                f"got {counts}"
            )
    else:
        ranked = sorted(range(batch), key=lambda i: -counts[i])
        counts = [counts[i] for i in ranked]
        order = pc.tensor(ranked, dtype=pc.int64, device=input.device)
        steps = steps.index_select(1, order)
    sizes = [sum(n > t for n in counts) for t in range(counts[0])]
    rows = steps.reshape((times * batch, *steps.shape[2:]))
    data = rows.index_select(0, _positions(sizes, batch, input.device))
    return PackedSequence(data, pc.tensor(sizes, dtype=pc.int64, device="cpu"), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undo `pack_padded_sequence`; return the padded sequences and their lengths.

    Args:
        sequence: The packed sequences.
        batch_first: Whether the batch comes first in the result.
        padding_value: The elements after the ends of sequences.
        total_length: T of the result; None is the longest length.

    Raises:
        ValueError: ``total_length`` is less than the longest length.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> packed = nn.utils.rnn.pack_sequence([pc.tensor([1, 2, 3]), pc.tensor([4])])
        >>> padded, lengths = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        >>> padded.tolist(), lengths.tolist()
        ([[1, 2, 3], [4, 0, 0]], [3, 1])
    """
    data, batch_sizes, _, restore = sequence
    sizes = [int(n) for n in batch_sizes.tolist()]
    times, width = len(sizes), sizes[0]
    if total_length is not None:
        if total_length < times:
            raise pc.ArgumentError(
                f"pad_packed_sequence: `total_length` must be at least {times}; got {total_length}"
            )
        times = total_length
    shape = tuple(data.shape[1:])
    rows = pc.full((times * width, *shape), padding_value, dtype=data.dtype, device=data.device)
    rows = rows.index_copy(0, _positions(sizes, width, data.device), data)
    padded = rows.reshape((times, width, *shape))
    counts = [sum(n > i for n in sizes) for i in range(width)]
    lengths = pc.tensor(counts, dtype=pc.int64, device="cpu")
    if restore is not None:
        padded, lengths = padded.index_select(1, restore), lengths.index_select(0, restore.cpu())
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Sequence[Tensor] | Tensor,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    r"""Stack sequences (L, \*) of different lengths, padded to the longest, T.

    Args:
        sequences: Tensors that differ in their first size only.
        batch_first: Return (N, T, \*) instead of (T, N, \\*).
        padding_value: The elements of the padding.
        padding_side: "right" (after the sequence) or "left".

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.utils.rnn.pad_sequence([pc.tensor([1, 2]), pc.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    items = list(sequences)
    if not items:
        raise pc.ArgumentError("pad_sequence: `sequences` must hold at least one tensor; got none")
    if padding_side not in ("left", "right"):
        raise pc.ArgumentError(
            f"pad_sequence: `padding_side` must be left or right; got {padding_side}"
        )
    longest = max(each.shape[0] for each in items)
    rest = tuple(items[0].shape[1:])
    padded = []
    for each in items:
        if tuple(each.shape[1:]) != rest:
            raise pc.ArgumentError(
                f"pad_sequence: `sequences` must differ in their first size only; got shapes "
                f"{[tuple(s.shape) for s in items]}"
            )
        missing = longest - each.shape[0]
        if missing:
            filler = pc.full((missing, *rest), padding_value, dtype=each.dtype, device=each.device)
            each = pc.cat([each, filler] if padding_side == "right" else [filler, each])
        padded.append(each)
    return pc.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Undo `pad_sequence`.

    Args:
        padded_sequences: Padded sequences: shape (L, N, ...).
        lengths: The length of each sequence.
        batch_first: Whether the shape is (N, L, ...).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> padded = pc.tensor([[1, 2], [3, 0]])
        >>> [x.tolist() for x in nn.utils.rnn.unpad_sequence(padded, pc.tensor([2, 1]), True)]
        [[1, 2], [3]]
    """
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [batch[i][: int(n)] for i, n in enumerate(lengths.tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    r"""Pack sequences (L, \*) of different lengths; see `pack_padded_sequence`.

    Args:
        sequences: Tensors of shape (L, ...), whose lengths L differ.
        enforce_sorted: Whether they must be given by descending length.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = [pc.tensor([1, 2, 3]), pc.tensor([4])]
        >>> nn.utils.rnn.pack_sequence(x).data.tolist()
        [1, 4, 2, 3]
    """
    lengths = [each.shape[0] for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undo `pack_sequence`.

    Args:
        packed_sequences: The packed sequences.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> packed = nn.utils.rnn.pack_sequence([pc.tensor([1, 2, 3]), pc.tensor([4])])
        >>> [x.tolist() for x in nn.utils.rnn.unpack_sequence(packed)]
        [[1, 2, 3], [4]]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
