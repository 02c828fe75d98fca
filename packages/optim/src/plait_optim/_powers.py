"""Powers and cosines of numbers that are the same on every processor.

The C library chooses its functions by the processor, and their last bits may differ. These are
computed with decimal digits, more than a float has, and rounded once.
"""

from __future__ import annotations

import decimal
import functools

_DIGITS = decimal.Context(prec=50)
_TWO_PI = decimal.Decimal("6.2831853071795864769252867665590057683943387987502116419499")


def power(base: float, exponent: float) -> float:
    """Return ``base ** exponent``.

    Raises:
        ZeroDivisionError: for a negative power of 0.

    Example:
        >>> from plait_optim._powers import power
        >>> power(0.5, 3), power(2, 0.5)
        (0.125, 1.4142135623730951)
    """
    return _power(float(base), float(exponent))


@functools.lru_cache(64)  # the parameters of a group ask for the same one
def _power(base: float, exponent: float) -> float:
    if exponent == 0:
        return 1.0
    if base == 0 and exponent < 0:
        raise ZeroDivisionError("0.0 cannot be raised to a negative power")
    return float(_DIGITS.power(decimal.Decimal(base), decimal.Decimal(exponent)))


def cosine(x: float) -> float:
    """Return the cosine of x, which is finite.

    Example:
        >>> from plait_optim._powers import cosine
        >>> cosine(0.0), cosine(1.0)
        (1.0, 0.5403023058681398)
    """
    with decimal.localcontext(_DIGITS):
        angle = decimal.Decimal(float(x)) % _TWO_PI
        total = term = decimal.Decimal(1)
        k = 0
        while abs(term) > decimal.Decimal("1e-45") or k * k < angle * angle:
            k += 2
            term *= -angle * angle / (k * (k - 1))
            total += term
        return float(total)
