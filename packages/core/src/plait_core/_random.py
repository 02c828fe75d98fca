"""The random numbers of the default generator."""

from __future__ import annotations

from typing import Any

from plait_abi import Generator
from plait_abi.binding import default_generator, default_generators


def manual_seed(seed: int) -> Generator:
    """Start the default stream of random numbers again; returns its generator.

    Results for a seed do not depend on the number of threads. Devices that have a stream of their
    own start it again, too.

    Args:
        seed: an int in [-2**63, 2**64); negative ones count from the top.

    Raises:
        ValueError: if it is out of range.

    Example:
        >>> import plait_core as pc
        >>> generator = pc.manual_seed(0)
        >>> generator.initial_seed()
        0
    """
    first, *others = default_generators()
    first.manual_seed(seed)
    for generator in others:
        generator.manual_seed(seed)
    return first


def seed() -> int:
    """Start the default stream at a seed from the operating system; returns the seed.

    Example:
        >>> import plait_core as pc
        >>> chosen = pc.seed()
        >>> pc.initial_seed() == chosen
        True
    """
    chosen = default_generator().seed()
    manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """Return the seed of the default stream.

    Example:
        >>> import plait_core as pc
        >>> generator = pc.manual_seed(3)
        >>> pc.initial_seed()
        3
    """
    return default_generator().initial_seed()


def get_rng_state() -> Any:
    """Return the position of the default stream: (seed, offset).

    A component that brings another kind of generator returns bytes.

    Example:
        >>> import plait_core as pc
        >>> generator = pc.manual_seed(3)
        >>> pc.get_rng_state()
        (3, 0)
    """
    return default_generator().get_state()


def set_rng_state(state: Any) -> None:
    """Set the default stream to a position that `get_rng_state` returned.

    Args:
        state: The state, as `get_rng_state` gives it.

    Example:
        >>> import plait_core as pc
        >>> state = pc.get_rng_state()
        >>> first = pc.rand(2)
        >>> pc.set_rng_state(state)
        >>> pc.equal(first, pc.rand(2))
        True
    """
    default_generator().set_state(state)
