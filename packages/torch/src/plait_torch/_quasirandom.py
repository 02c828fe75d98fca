"""`torch.quasirandom`: Sobol' sequences.

Points are made of direction numbers, which a recurrence with a primitive polynomial over GF(2)
gives for each dimension (P. Bratley and B. L. Fox, "Algorithm 659", 1988). The first numbers of
each recurrence are those of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better
two-dimensional projections" (2008), their table ``new-joe-kuo-6.21201``; the file
``sobol_numbers.bin`` has them, and ``LICENSE-sobol`` its terms.

The file has a row for each dimension from the second one on, by the degree s of its polynomial. A
row is a number of ``(s - 1) + s (s - 1) / 2`` bits in whole bytes, the highest first: the inner
coefficients of the polynomial, then ``(m_k - 1) / 2`` of the odd numbers m_2 to m_s in k - 1 bits
each; m_1 is 1. botorch and diffusers use it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import plait

__all__ = ["SobolEngine"]

_BITS = 30
# how many dimensions have a polynomial of degree 1, 2, ...
_COUNTS = (1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776)


def _rows(count: int) -> Iterator[tuple[int, list[tuple[int, list[int]]]]]:
    """Yield for each degree the inner coefficients and first numbers of its dimensions."""
    with (Path(__file__).parent / "sobol_numbers.bin").open("rb") as file:
        for degree, there in enumerate(_COUNTS, 1):
            size = -(-(degree - 1 + degree * (degree - 1) // 2) // 8)
            rows = []
            for _ in range(min(there, count)):
                bits, numbers = int.from_bytes(file.read(size), "big"), []
                for k in range(degree, 1, -1):
                    numbers.append((bits & (1 << (k - 1)) - 1) << 1 | 1)
                    bits >>= k - 1
                rows.append((bits, [1, *reversed(numbers)]))
            if rows:
                yield degree, rows
            count -= len(rows)


def _directions(dimension: int) -> np.ndarray[Any, Any]:
    """Return the direction numbers of each dimension, (dimension, 30), as integers of 30 bits."""
    parts = [np.full((1, _BITS), 1)]  # van der Corput's sequence
    for degree, rows in _rows(dimension - 1):
        numbers = np.zeros((len(rows), _BITS), np.int64)
        numbers[:, :degree] = [first for _, first in rows]
        inner = np.array([bits for bits, _ in rows], np.int64)
        for k in range(degree, _BITS):
            new = numbers[:, k - degree] ^ (numbers[:, k - degree] << degree)
            for i in range(1, degree):
                new ^= ((inner >> (degree - 1 - i)) & 1) * (numbers[:, k - i] << i)
            numbers[:, k] = new
        parts.append(numbers)
    whole: np.ndarray[Any, Any] = np.concatenate(parts) << np.arange(_BITS - 1, -1, -1)
    return whole


@functools.lru_cache(maxsize=8)
def _known_directions(dimension: int) -> np.ndarray[Any, Any]:
    return _directions(dimension)


def _random_bits(seed: int, count: int) -> np.ndarray[Any, Any]:
    """Return the lowest bits of the first numbers of the Mersenne Twister MT19937 with a seed,
    which PyTorch draws.
    """
    key = [seed & 0xFFFFFFFF]
    for i in range(1, 624):
        key.append((1812433253 * (key[-1] ^ key[-1] >> 30) + i) & 0xFFFFFFFF)
    source = np.random.MT19937()
    state: Any = {"key": np.array(key, np.uint32), "pos": 624}
    source.state = {"bit_generator": "MT19937", "state": state}
    return (source.random_raw(count) & 1).astype(np.int64)


class SobolEngine:
    """Makes the points of a Sobol' sequence, which cover the unit cube evenly.

    The points are PyTorch's, also those that are scrambled with a seed. Without a seed, plait's
    generator scrambles.

    Args:
        dimension: of the points, from 1 to 21201.
        scramble: apply a random linear map and a shift to the digits of the points (A. B. Owen,
            "Scrambling Sobol and Niederreiter-Xing points", 1998; J. Matousek's form).
        seed: of the scrambling.

    Raises:
        ValueError: if there is no such dimension.

    Example:
        >>> from plait_torch._quasirandom import SobolEngine
        >>> SobolEngine(2).draw(4)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500],
                [0.2500, 0.7500]])
    """

    MAXBIT = _BITS
    MAXDIM = 1 + sum(_COUNTS)

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"SobolEngine: `dimension` must be from 1 to {self.MAXDIM}; got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        directions, shift = _known_directions(dimension), np.zeros(dimension, np.int64)
        if scramble:
            directions, shift = self._scrambled(directions)
        self.sobolstate = plait.from_numpy(directions.copy())
        self.shift = plait.from_numpy(shift)
        self.reset()

    def _scrambled(
        self, directions: np.ndarray[Any, Any]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the directions after a random map of their digits, and a random shift."""
        count = self.dimension * _BITS
        if self.seed is None:
            bits = plait.randint(2, (count * (_BITS + 1),)).numpy()
        else:
            bits = _random_bits(self.seed, count * (_BITS + 1))
        shift = bits[:count].reshape(-1, _BITS) @ (1 << np.arange(_BITS))
        # below the diagonal any digit, on it 1
        maps = np.tril(bits[count:].reshape(-1, _BITS, _BITS), -1) + np.eye(_BITS, dtype=np.int64)
        places = np.arange(_BITS - 1, -1, -1)
        digits = directions[:, :, None] >> places & 1
        return (digits @ maps.transpose(0, 2, 1) & 1) @ (1 << places), shift

    def reset(self) -> SobolEngine:
        """Go back to the first point; return the engine."""
        self.num_generated = 0
        self.quasi = self.shift.clone()
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next n points; return the engine.

        Example:
            >>> from plait_torch._quasirandom import SobolEngine
            >>> SobolEngine(2).fast_forward(3).draw(1)
            tensor([[0.2500, 0.7500]])
        """
        self.num_generated += n
        if self.num_generated:
            self.quasi = self._digits(self.num_generated - 1, 1)[0]
        return self

    def _digits(self, first: int, count: int) -> Any:
        """Return points as integers of 30 bits, (count, dimension), from the number of the first.

        Point n is the sum without carry of the directions at the ones of n's Gray code.
        """
        if first + count > 1 << _BITS:
            raise ValueError(
                f"SobolEngine: there are {1 << _BITS} points; got {first + count} as the number of "
                "the last one"
            )
        numbers = plait.arange(first, first + count)
        gray = numbers ^ (numbers >> 1)
        points = self.shift.expand(count, self.dimension).clone()
        for k in range(min(_BITS, (first + count).bit_length())):
            points ^= ((gray >> k) & 1).unsqueeze(1) * self.sobolstate[:, k]
        return points

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """Return the next n points, (n, dimension), from 0 up to but not 1.

        Args:
            n: how many.
            out: a tensor that they are written into.
            dtype: of the points; None is the default dtype.
        """
        dtype = plait.get_default_dtype() if dtype is None else dtype
        digits = self._digits(self.num_generated, n)
        self.num_generated += n
        if n:
            self.quasi = digits[-1].clone()
        points = digits.to(dtype) / (1 << _BITS)
        return points if out is None else out.resize_(points.shape).copy_(points)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """Return the next ``2**m`` points; all drawn ones together must be a power of two.

        Raises:
            ValueError: if they are not.

        Example:
            >>> from plait_torch._quasirandom import SobolEngine
            >>> SobolEngine(3).draw_base2(4).mean()
            tensor(0.4688)
        """
        n = 1 << m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "SobolEngine.draw_base2: a power of two is required for the number of all points; "
                f"got {self.num_generated} + {n}; draw them by `draw`, or `reset` first"
            )
        return self.draw(n, out, dtype)

    def __repr__(self) -> str:
        options = [f"dimension={self.dimension}"]
        options += ["scramble=True"] * self.scramble
        options += [f"seed={self.seed}"] * (self.seed is not None)
        return f"SobolEngine({', '.join(options)})"
