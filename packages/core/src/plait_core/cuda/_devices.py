"""Which CUDA devices there are, what they are, and the current one of each thread."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from plait_abi import binding

_F = TypeVar("_F", bound=Callable[..., Any])

_WARP = 32
_TEXT = "ask plait.cuda.is_available() first"


class NoCuda(AssertionError, RuntimeError):
    """A function needs a CUDA device, and there is none."""


def require_device(name: str, device: Any = None) -> binding.device:
    """Return the CUDA device that an argument names, in the name of a function.

    Raises:
        NoCuda: if there is no CUDA device.
        ValueError: for another type of device, or a number that is too large.
    """
    try:
        result = _named(name, device)
        binding.check_device(f"cuda.{name}", result)
    except (RuntimeError, ImportError) as error:
        if is_available():
            raise
        text = str(error)
        begin = "" if text.startswith("cuda.") else f"cuda.{name}: "
        raise NoCuda(f"{begin}{text}; {_TEXT}") from None
    return result


def _named(name: str, device: Any) -> binding.device:
    if device is None:
        return binding.device("cuda")
    if isinstance(device, int) and not isinstance(device, bool):
        if device < 0:
            raise ValueError(f"cuda.{name}: `device` must not be negative, got {device}")
        return binding.device("cuda", device)
    try:
        result = binding.device(device)
    except TypeError:
        kind = type(device).__name__
        raise TypeError(
            f"cuda.{name}: `device` must be a device, str, int or None, got {kind}"
        ) from None
    if result.type != "cuda":
        raise ValueError(f"cuda.{name}: `device` must be a CUDA device, got {str(result)!r}")
    return result


def is_available() -> bool:
    """Return whether there is a CUDA device that can be used.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.is_available() == (pc.cuda.device_count() > 0)
        True
    """
    return device_count() > 0


def device_count() -> int:
    """Return the number of CUDA devices: 0 without the package plait-cuda, or without a driver.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.device_count() >= 0
        True
    """
    return binding.device_count("cuda")


def is_initialized() -> bool:
    """Return whether the component of CUDA devices is loaded and has found one.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.is_initialized() in (True, False)
        True
    """
    return "plait_cuda" in sys.modules and is_available()


def init() -> None:
    """Start the driver, which the first use of a device does as well.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     pc.cuda.init()
    """
    require_device("init")


def current_device() -> int:
    """Return the number of the CUDA device that "cuda" means in this thread.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.current_device() if pc.cuda.is_available() else 0
        0
    """
    return require_device("current_device").index or 0


def set_device(device: Any) -> None:
    """Let "cuda" mean this device in the calling thread; None and negative numbers change nothing.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.
        ValueError: if there is no device with this number.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     pc.cuda.set_device(0)
    """
    if not _is_nothing(device):
        binding.set_device(require_device("set_device", device))


def _is_nothing(device: Any) -> bool:
    return device is None or (isinstance(device, int) and device < 0)


class device:  # noqa: N801 - PyTorch's name
    """A context in which a CUDA device is the current one of the thread; None and negative numbers
    change nothing.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: when it is entered, if there is no device.

    Example:
        >>> import plait_core as pc
        >>> with pc.cuda.device(None):
        ...     pass
    """

    def __init__(self, device: Any) -> None:
        self._choice = None if _is_nothing(device) else device
        self.prev_idx = -1

    @property
    def idx(self) -> int:
        """The number of the device; -1 if the context changes nothing."""
        if self._choice is None or isinstance(self._choice, int):
            return -1 if self._choice is None else self._choice
        return binding.device(self._choice).index or 0

    def __enter__(self) -> None:
        if self._choice is not None:
            self.prev_idx = binding.set_device(require_device("device", self._choice))

    def __exit__(self, *error: object) -> None:
        if self._choice is not None:
            binding.set_device(binding.device("cuda", self.prev_idx))


class device_of(device):  # noqa: N801 - PyTorch's name
    """A context in which a tensor's device is the current one; other tensors change nothing.

    Args:
        obj: The tensor or storage.

    Example:
        >>> import plait_core as pc
        >>> with pc.cuda.device_of(pc.ones(1)):
        ...     pass
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "cuda" else None)


class DeviceProperties(NamedTuple):
    """What a CUDA device is, under PyTorch's names."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    is_integrated: bool
    max_threads_per_multi_processor: int
    shared_memory_per_block_optin: int
    warp_size: int
    uuid: uuid.UUID


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Return what a device is: its name, memory, version and size.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     assert pc.cuda.get_device_properties().total_memory > 0
    """
    facts = binding.properties(require_device("get_device_properties", device))
    return DeviceProperties(
        name=facts["name"],
        major=facts["major"],
        minor=facts["minor"],
        total_memory=facts["memory"],
        multi_processor_count=facts["units"],
        is_integrated=facts["unified"],
        max_threads_per_multi_processor=facts["threads"],
        shared_memory_per_block_optin=facts["shared_memory"],
        warp_size=_WARP,
        uuid=uuid.UUID(bytes=facts["uuid"]),
    )


def get_device_name(device: Any = None) -> str:
    """Return the name of a device's product.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> name = pc.cuda.get_device_name() if pc.cuda.is_available() else "none"
    """
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the version of a device's instruction set, such as (9, 0).

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> version = pc.cuda.get_device_capability() if pc.cuda.is_available() else (0, 0)
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_arch_list() -> list[str]:
    """Return the instruction sets of the devices that there are, such as ``["sm_90"]``.

    Example:
        >>> import plait_core as pc
        >>> len(pc.cuda.get_arch_list()) <= pc.cuda.device_count()
        True
    """
    versions = {get_device_capability(i) for i in range(device_count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(versions)]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the current device computes with bfloat16; from version 8.0 on its products
    do so in hardware.

    Args:
        including_emulation: True also counts devices that compute it in float32.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.is_bf16_supported() == pc.cuda.is_available()
        True
    """
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def is_tf32_supported() -> bool:
    """Return whether the current device has products in TF32: from version 8.0 on.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.is_tf32_supported() in (True, False)
        True
    """
    return is_available() and get_device_capability() >= (8, 0)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return whether a device reads the memory of another one.

    Args:
        device: The device; None: the current one.
        peer_device: The other device.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.device_count() > 1:
        ...     answer = pc.cuda.can_device_access_peer(0, 1)
    """
    first = require_device("can_device_access_peer", device)
    second = require_device("can_device_access_peer", peer_device)
    return first != second and all(binding.properties(each)["peers"] for each in (first, second))


def synchronize(device: Any = None) -> None:
    """Wait until all work of a device is done; errors of earlier calls are raised here.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     pc.cuda.synchronize()
    """
    binding.synchronize(require_device("synchronize", device))
