"""Bytes of many rows at once: numbers of a fixed width, and texts that rows name by a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from plait_profiler._tree import Array

GROUP = 10**4


def _groups_of_digits() -> Array:
    """Return the texts of 0 to 9999 as 4 bytes: zero-filled; padded; padded with 0 as a digit."""
    filled = b"".join(b"%04d" % number for number in range(GROUP))
    digits = b"".join(b"%4d" % number for number in range(GROUP))
    return np.frombuffer(filled + b"    " + digits[4:] + digits, np.uint32)


_DIGITS = _groups_of_digits()
_THOUSANDTHS = np.frombuffer(b"".join(b".%03d" % n for n in range(1000)), np.uint32)


def chunks(rows: Array, size: int = 1 << 13) -> Iterator[Array]:
    """Yield `rows` in parts of at most `size`, so that memory does not grow with their number."""
    for begin in range(0, len(rows), size):
        yield rows[begin : begin + size]


def decimals(values: Array) -> Array:
    """Return unsigned numbers as decimal digits: a matrix of bytes, padded with spaces in front.

    Example:
        >>> decimals(np.array([7, 12345])).tobytes()
        b'    712345'
    """
    rest = np.asarray(values, np.uint64)
    width = len(str(int(rest.max()))) if len(rest) else 1
    groups = -(-width // 4)
    digits = np.empty((len(rest), groups), np.uint32)
    for group in range(groups - 1, -1, -1):
        rest, part = np.divmod(rest, np.uint64(GROUP))
        alone = 2 * GROUP if group == groups - 1 else GROUP  # 0 is a digit in the last group only
        digits[:, group] = _DIGITS[part + np.uint64(alone) * (rest == 0)]
    return digits.view(np.uint8)[:, 4 * groups - width :]


def microseconds(nanoseconds: Array) -> Array:
    """Return times as decimal microseconds with three places, as `decimals` does.

    Example:
        >>> microseconds(np.array([7, 12345])).tobytes()
        b' 0.00712.345'
    """
    whole, rest = np.divmod(np.asarray(nanoseconds, np.uint64), np.uint64(1000))
    return np.concatenate([decimals(whole), _THOUSANDTHS[rest].view(np.uint8).reshape(-1, 4)], 1)


def fields(*parts: bytes | Array, shown: Array | None = None) -> list[bytes]:
    """Return for each row the bytes of all parts, or no bytes where `shown` is False.

    Args:
        parts: the same bytes for all rows, or a matrix with a row of bytes for each.
        shown: one bool a row. The bytes must not end in 0 where it is given.

    Example:
        >>> fields(b'"n":', decimals(np.array([7, 12])))
        [b'"n": 7', b'"n":12']
    """
    matrices = [part for part in parts if not isinstance(part, bytes)]
    widths = [len(part) if isinstance(part, bytes) else part.shape[1] for part in parts]
    whole = np.empty((len(matrices[0]), sum(widths)), np.uint8)
    at = 0
    for part, width in zip(parts, widths, strict=True):
        constant = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part
        whole[:, at : at + width] = constant
        at += width
    if shown is None:
        texts: list[bytes] = whole.view(f"V{at}").ravel().tolist()
    else:
        whole[~shown] = 0  # NumPy removes zero bytes at the end of a string
        texts = whole.view(f"S{at}").ravel().tolist()
    return texts


def interleaved(*pieces: Sequence[bytes]) -> bytes:
    """Return the pieces of the first row, then those of the second, and so on, joined.

    Example:
        >>> interleaved([b"a", b"b"], [b"1", b"2"])
        b'a1b2'
    """
    whole: list[bytes] = [b""] * (len(pieces) * len(pieces[0]))
    for at, piece in enumerate(pieces):
        whole[at :: len(pieces)] = piece
    return b"".join(whole)
