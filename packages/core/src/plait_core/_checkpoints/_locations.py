"""The devices of the tensors of a checkpoint: `map_location`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plait_abi import binding
from plait_core._checkpoints._errors import CheckpointError
from plait_core._core import Tensor
from plait_core._tensor._storages import UntypedStorage


class Locations:
    """The device of each storage of a file, as `map_location` says."""

    def __init__(self, map_location: Any) -> None:
        self._function: Callable[[Any, str], Any] | None = None
        self._names: dict[str, str] = {}
        self._target: str | None = None
        self.failure: Exception | None = None  # the error that the function raised
        if isinstance(map_location, Mapping):
            self._names = {str(key): str(value) for key, value in map_location.items()}
        elif isinstance(map_location, (str, binding.device)):
            self._target = str(binding.device(map_location))
        elif callable(map_location):
            self._function = map_location
        elif map_location is not None:
            raise TypeError(
                "load: `map_location` must be a device, a dict of devices, a function or None, got "
                f"{type(map_location).__name__}"
            )

    def target(self, location: str) -> str:
        """Return the device for a storage that was saved from `location`."""
        return self._target or self._names.get(location, location)

    def wants_bytes(self, location: str) -> bool:
        """Return whether the elements are needed at all."""
        return self._function is not None or not self.target(location).startswith("meta")

    def moved(self, data: Tensor, location: str) -> Tensor:
        """Return the bytes of a storage on their device."""
        if self._function is not None:
            try:
                result = self._function(UntypedStorage(data), location)
            except Exception as error:
                self.failure = error
                raise
            if isinstance(result, UntypedStorage):
                return result._bytes
            if result is not None:
                self.failure = TypeError(
                    "load: `map_location` must return the storage or None, got "
                    f"{type(result).__name__}"
                )
                raise self.failure
        target = self.target(location)
        if target == "cpu" or target.startswith("meta"):
            return data
        try:
            moved: Tensor = data.to(device=target)
        except (NotImplementedError, ValueError, RuntimeError, TypeError) as error:
            raise CheckpointError(
                f"load: a tensor of the file was on {location}, and {target} is not available "
                f'({error}); load(..., map_location="cpu") loads to the CPU'
            ) from error
        return moved
