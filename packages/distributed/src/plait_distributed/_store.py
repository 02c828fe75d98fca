"""Stores: keys and values that processes share, for small facts such as addresses."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from plait_distributed._errors import DistStoreError
from plait_distributed._work import seconds_of

_PAUSE = 0.01  # seconds between looks at a file
_HEAD = struct.Struct("<II")


class Store:
    """Keys and values that processes share: the base class of stores.

    Values are bytes; a text that is given is encoded. `get` and `wait` wait until keys are there.

    Args:
        timeout: How long waiting may take: a timedelta, or seconds.

    Example:
        >>> import plait_distributed as dist
        >>> store = dist.HashStore()
        >>> store.set("step", "3")
        >>> store.get("step"), store.add("count", 2), store.num_keys()
        (b'3', 2, 2)
    """

    def __init__(self, timeout: Any = 300.0) -> None:
        self._timeout = seconds_of(type(self).__name__, timeout)

    @property
    def timeout(self) -> float:
        """Seconds that `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: Any) -> None:
        """Set the seconds that `get` and `wait` wait."""
        self._timeout = seconds_of("set_timeout", timeout)

    def set(self, key: str, value: str | bytes) -> None:
        """Set a key's value."""
        self._change(lambda data: data.__setitem__(key, _bytes("set", value)))

    def get(self, key: str) -> bytes:
        """Return a key's value, waiting until it is there.

        Raises:
            DistStoreError: if it does not come in time.
        """
        self.wait([key])
        value = self._look().get(key)
        if value is None:
            raise DistStoreError(f"get: the key {key!r} was deleted")
        return value

    def add(self, key: str, amount: int) -> int:
        """Add to a key's number, which is 0 if there is none; return the sum."""

        def change(data: dict[str, bytes]) -> int:
            total = int(data.get(key, b"0")) + int(amount)
            data[key] = str(total).encode()
            return total

        total: int = self._change(change)
        return total

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a key's value."""

        def change(data: dict[str, bytes]) -> None:
            data[key] = data.get(key, b"") + _bytes("append", value)

        self._change(change)

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Set a key's value if it is the expected one, or if it is missing and nothing is
        expected; return the value that it has then.
        """
        expected, required = _bytes("compare_set", expected_value), _bytes("set", desired_value)

        def change(data: dict[str, bytes]) -> bytes:
            if data.get(key, b"") == expected:
                data[key] = required
            return data.get(key, expected)

        value: bytes = self._change(change)
        return value

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are there."""
        data = self._look()
        return all(key in data for key in keys)

    def wait(self, keys: Sequence[str], timeout: Any = None) -> None:
        """Wait until all keys are there.

        Raises:
            DistStoreError: if they do not come in time.
        """
        seconds = self._timeout if timeout is None else seconds_of("wait", timeout)
        deadline = time.monotonic() + seconds
        while True:
            missing = [key for key in keys if key not in self._look()]
            if not missing:
                return
            if time.monotonic() > deadline:
                raise DistStoreError(f"wait: waited {seconds:g} s for {', '.join(missing)}")
            self._pause()

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set the values of several keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of several keys, waiting for them."""
        return [self.get(key) for key in keys]

    def delete_key(self, key: str) -> bool:
        """Delete a key; return whether it was there."""
        deleted: bool = self._change(lambda data: data.pop(key, None) is not None)
        return deleted

    def num_keys(self) -> int:
        """Return the number of keys."""
        return len(self._look())

    def _look(self) -> dict[str, bytes]:
        raise NotImplementedError(f"{type(self).__name__}: it has no data")

    def _change(self, change: Callable[[dict[str, bytes]], Any]) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: it has no data")

    def _pause(self) -> None:
        time.sleep(_PAUSE)


def _bytes(caller: str, value: str | bytes) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"{caller}: the value must be a str or bytes, got {type(value).__name__}")


class HashStore(Store):
    """A store in the memory of this process, for its threads.

    Args:
        timeout: How long waiting may take: a timedelta, or seconds.

    Example:
        >>> import plait_distributed as dist
        >>> store = dist.HashStore()
        >>> store.set("a", b"1")
        >>> store.check(["a", "b"])
        False
    """

    def __init__(self, timeout: Any = 300.0) -> None:
        super().__init__(timeout)
        self._data: dict[str, bytes] = {}
        # taken in one step, as an interrupt may come between the steps of a Condition's `with`
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def _look(self) -> dict[str, bytes]:
        return self._data

    def _change(self, change: Callable[[dict[str, bytes]], Any]) -> Any:
        with self._lock:
            result = change(self._data)
            self._changed.notify_all()
        return result

    def _pause(self) -> None:
        with self._lock:
            self._changed.wait(_PAUSE)


class FileStore(Store):
    """A store in a file that the processes of this host share.

    Changes are appended under a lock of the file, which goes with the process that holds it.

    Args:
        file_name: the path; the file is made if it is missing.
        world_size: the number of processes; -1: not known.
        timeout: seconds that `get` and `wait` wait.

    Example:
        >>> import os, tempfile, plait_distributed as dist
        >>> path = os.path.join(tempfile.mkdtemp(), "store")
        >>> dist.FileStore(path).set("a", "1")
        >>> dist.FileStore(path).get("a")
        b'1'
    """

    def __init__(self, file_name: str, world_size: int = -1, timeout: Any = 300.0) -> None:
        super().__init__(timeout)
        self._path = os.fspath(file_name)
        self._data: dict[str, bytes] = {}
        self._read = 0  # bytes of the file
        self._lock = threading.Lock()
        with open(self._path, "ab"):
            pass

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._path

    def _look(self) -> dict[str, bytes]:
        with self._lock, open(self._path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return dict(self._catch_up(file))

    def _catch_up(self, file: BinaryIO) -> dict[str, bytes]:
        file.seek(self._read)
        while head := file.read(_HEAD.size):
            key_size, size = _HEAD.unpack(head)
            key = file.read(key_size).decode()
            if size == 0:
                self._data.pop(key, None)
            else:
                self._data[key] = file.read(size - 1)
        self._read = file.tell()
        return self._data

    def _change(self, change: Callable[[dict[str, bytes]], Any]) -> Any:
        with self._lock, open(self._path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            before = self._catch_up(file)
            data = dict(before)  # in case that this is interrupted before the file is written
            result = change(data)
            changed = {key: value for key, value in data.items() if before.get(key) != value}
            records = [_record(key, value) for key, value in changed.items()]
            records += [_record(key, None) for key in before if key not in data]
            file.write(b"".join(records))
            file.flush()
            self._data, self._read = data, file.tell()
        return result


def _record(key: str, value: bytes | None) -> bytes:
    name = key.encode()
    if value is None:
        return _HEAD.pack(len(name), 0) + name
    return _HEAD.pack(len(name), len(value) + 1) + name + value


class PrefixStore(Store):
    """A store whose keys are those of another one, behind a prefix.

    Args:
        prefix: Put before each key.
        store: The store that has the values.

    Example:
        >>> import plait_distributed as dist
        >>> inner = dist.HashStore()
        >>> dist.PrefixStore("job", inner).set("a", "1")
        >>> inner.get("job/a")
        b'1'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__(store.timeout)
        self._prefix = prefix + "/"
        self._inner = store

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._inner

    def set(self, key: str, value: str | bytes) -> None:
        """Set a key's value."""
        self._inner.set(self._prefix + key, value)

    def get(self, key: str) -> bytes:
        """Return a key's value, waiting until it is there."""
        self.wait([key])
        return self._inner.get(self._prefix + key)

    def add(self, key: str, amount: int) -> int:
        """Add to a key's number, which is 0 if there is none; return the sum."""
        return self._inner.add(self._prefix + key, amount)

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a key's value."""
        self._inner.append(self._prefix + key, value)

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Do the same as `Store.compare_set`."""
        return self._inner.compare_set(self._prefix + key, expected_value, desired_value)

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are there."""
        return self._inner.check([self._prefix + key for key in keys])

    def wait(self, keys: Sequence[str], timeout: Any = None) -> None:
        """Wait until all keys are there."""
        seconds = self._timeout if timeout is None else timeout
        self._inner.wait([self._prefix + key for key in keys], seconds)

    def delete_key(self, key: str) -> bool:
        """Delete a key; return whether it was there."""
        return self._inner.delete_key(self._prefix + key)

    def num_keys(self) -> int:
        """Return the number of keys of the other store, with any prefix."""
        return self._inner.num_keys()
