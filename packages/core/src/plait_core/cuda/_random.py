"""Random numbers of CUDA devices: each has a stream of its own (Generator)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plait_abi import binding
from plait_core.cuda._devices import is_available, require_device


def _all() -> list[binding.Generator]:
    """Return the generators of all devices."""
    count = binding.device_count("cuda")
    return [binding.default_generator(binding.device("cuda", i)) for i in range(count)]


def _generator(name: str, device: Any = None) -> binding.Generator:
    return binding.default_generator(require_device(name, device))


def manual_seed(seed: int) -> None:
    """Start the random numbers of the current device again; nothing happens without a device.

    Args:
        seed: The seed.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.manual_seed(0)
    """
    if is_available():
        _generator("manual_seed").manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Start the random numbers of all devices again; nothing happens without a device.

    Args:
        seed: The seed.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.manual_seed_all(0)
    """
    for generator in _all():
        generator.manual_seed(int(seed))


def seed() -> None:
    """Start the random numbers of the current device with a seed of the operating system.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.seed()
    """
    if is_available():
        _generator("seed").seed()


def seed_all() -> None:
    """Start the random numbers of all devices with one seed of the operating system.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.seed_all()
    """
    if is_available():
        manual_seed_all(_generator("seed_all").seed())


def initial_seed() -> int:
    """Return the seed of the current device's random numbers.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     assert pc.cuda.initial_seed() >= 0
    """
    return _generator("initial_seed").initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """Return where the random numbers of a device are, as `plait.get_rng_state` does for the CPU.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     pc.cuda.set_rng_state(pc.cuda.get_rng_state())
    """
    return _generator("get_rng_state", device).get_state()


def get_rng_state_all() -> list[Any]:
    """Return the states of all devices.

    Example:
        >>> import plait_core as pc
        >>> len(pc.cuda.get_rng_state_all()) == pc.cuda.device_count()
        True
    """
    return [generator.get_state() for generator in _all()]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the random numbers of a device to a state that `get_rng_state` returned.

    Args:
        new_state: The state, as `get_rng_state` gives it.
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     pc.cuda.set_rng_state(pc.cuda.get_rng_state())
    """
    _generator("set_rng_state", device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the random numbers of all devices.

    Args:
        new_states: A state for each device.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.set_rng_state_all(pc.cuda.get_rng_state_all())
    """
    for generator, state in zip(_all(), new_states, strict=False):
        generator.set_state(state)
