"""The workers' job, pickled once; large parts are in a segment that all workers map."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from plait_data._workers._arena import map_file
from plait_data._workers._codec import as_array, rebuild
from plait_data._workers._containers import LEAST, shared
from plait_data._workers._held import held
from plait_data._workers._task import Job

LEAST_SHARED = 4096  # smallest size in bytes of a buffer in the segment
_ALIGNMENT = 64
_CHUNK = 1000


class _ByValue(Exception):
    """Raised for an object that can only be pickled by value."""


class _Sharing:
    """A mixin for picklers (plain and cloudpickle's) that shares large data."""

    describes = False

    def __init__(self, file: Any, keep: Callable[[pickle.PickleBuffer], Any]) -> None:
        super().__init__(file, 5, buffer_callback=keep)  # type: ignore[call-arg]
        self._packed: dict[int, tuple[Any, Any]] = {}

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if (kind is not list and kind is not tuple and kind is not dict) or len(value) < LEAST:
            return None
        # stored with the value, so that its id is not used again
        entry = self._packed.get(id(value))
        if entry is None:
            entry = self._packed[id(value)] = (value, shared(value))
        return entry[1]

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is np.ndarray:
            return _array(value)
        if kind is np.memmap:
            return _reopened(value) or _array(np.asarray(value))
        if not self.describes and isinstance(value, (type, FunctionType)):
            if _has_no_address(value):
                raise _ByValue
            return NotImplemented
        tensor = as_array(value)
        if tensor is not None:
            return rebuild, tensor
        further = getattr(super(), "reducer_override", None)
        return NotImplemented if further is None else further(value)


class _Plain(_Sharing, pickle.Pickler):
    pass


def _array(value: Any) -> Any:
    if value.dtype.hasobject:
        # in pieces that are lists, which NumPy requires
        if value.dtype != object:
            return NotImplemented
        flat = value.reshape(-1)
        pieces = [flat[i : i + _CHUNK].tolist() for i in range(0, flat.size, _CHUNK)]
        return _object_array, (value.dtype, value.shape, *pieces)
    if value.flags.forc or value.nbytes < LEAST_SHARED:
        return NotImplemented
    return np.ascontiguousarray(value).__reduce_ex__(5)


def _object_array(dtype: Any, shape: Any, *pieces: list[Any]) -> Any:
    array = np.empty(sum(map(len, pieces)), dtype)
    at = 0
    for piece in pieces:
        for item in piece:
            array[at] = item
            at += 1
    return array.reshape(shape)


def _reopened(value: Any) -> Any:
    """The reduction by which a worker maps the file itself, if ``value`` is a read-only mapping of
    a whole file.
    """
    whole = isinstance(value.base, mmap.mmap) and value.filename is not None
    if not whole or value.mode not in ("r", "c") or not value.flags.c_contiguous:
        return None
    return np.memmap, (str(value.filename), value.dtype, value.mode, value.offset, value.shape)


def _has_no_address(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    if module in ("__main__", "__mp_main__"):
        return True
    if module is None or module == "builtins":
        return False
    member: Any = sys.modules.get(module)
    for part in value.__qualname__.split("."):
        member = getattr(member, part, None)
    return member is not value


class Segment:
    """A job in shared memory.

    Attributes:
        file: the memfd; its descriptor is to be sent to the workers, then it is to be closed.
        mapping: keeps the pages shared, also with one worker.
        table: (start, size) of the pickle and of each buffer, as bytes of int64.
    """

    def __init__(self, job: Job) -> None:
        content, buffers = _pickled(job)
        sizes = [len(content), *(buffer.nbytes for buffer in buffers)]
        starts, end = [], 0
        for size in sizes:
            starts.append(end)
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        table = np.array([starts, sizes], np.int64).T
        self.table_at = end
        self.entries = len(sizes)
        total = end + table.nbytes
        with held():
            self.file = io.FileIO(os.memfd_create("plait-data-job", os.MFD_CLOEXEC))
        try:
            self.mapping = _filled(self.file.fileno(), total)
            target = np.frombuffer(self.mapping, np.uint8)
            parts = [content, *buffers, table.tobytes()]
            for start, part in zip([*starts, end], parts, strict=True):
                if len(part):
                    source = np.frombuffer(part, np.uint8)
                    target[start : start + source.size] = source
        except BaseException:
            self.file.close()
            raise


def _filled(descriptor: int, size: int) -> mmap.mmap:
    try:
        os.posix_fallocate(descriptor, 0, size)
        return map_file(descriptor, size)
    except OSError as error:
        raise OSError(
            error.errno,
            f"DataLoader: the dataset needs {size} bytes of shared memory for its workers, which "
            f"cannot be allocated ({error.strerror}); raise the limit (ulimit -f, ulimit -v, the "
            "container's memory), use fewer samples, or num_workers=0",
        ) from None


def _pickled(job: Job) -> tuple[bytes, list[memoryview]]:
    problem = None
    try:
        return _dump(_Plain, job)
    except _ByValue:
        pass
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        # without its traceback, whose frames would keep the loader alive
        problem = error.with_traceback(None)
    try:
        import cloudpickle
    except ImportError:
        if problem is not None:
            raise _unsendable(problem) from problem
        raise ModuleNotFoundError(
            "DataLoader: the dataset, collate_fn or worker_init_fn uses a function or class of the "
            "main module, a local one or a lambda; to send it to worker processes install "
            "cloudpickle (pip install cloudpickle), or put it into a module that can be imported",
            name="cloudpickle",
        ) from None

    try:
        if "__mp_main__" in sys.modules:  # the main module of a process that spawn started
            cloudpickle.register_pickle_by_value(sys.modules["__mp_main__"])
        return _dump(_describing(cloudpickle.Pickler), job)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise _unsendable(error) from error


def _describing(pickler: Any) -> Any:
    return type("_Describing", (_Sharing, pickler), {"describes": True})


def _dump(kind: Any, job: Job) -> tuple[bytes, list[memoryview]]:
    buffers: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= LEAST_SHARED:
            buffers.append(raw)
        return raw.nbytes < LEAST_SHARED  # true: into the pickle

    file = io.BytesIO()
    kind(file, keep).dump(job)
    return file.getvalue(), buffers


def _unsendable(error: BaseException) -> TypeError:
    return TypeError(
        "DataLoader: the dataset, collate_fn and worker_init_fn must be such that they can be "
        f"pickled for worker processes; {error}. Open files and connections in the worker (at the "
        'first access or in worker_init_fn), or use multiprocessing_context="fork" or "thread"'
    )


class _Loader(pickle.Unpickler):
    def persistent_load(self, stand_in: Any) -> Any:
        return stand_in


def load(descriptor: int, table_at: int, entries: int) -> Job:
    """The job in a segment; its arrays are views of a private (copy-on-write) mapping."""
    mapping = map_file(descriptor, os.fstat(descriptor).st_size, mmap.ACCESS_COPY)
    whole = memoryview(mapping)
    table = np.frombuffer(mapping, np.int64, 2 * entries, table_at).reshape(-1, 2).tolist()
    parts = [whole[start : start + size] for start, size in table]
    job = _Loader(io.BytesIO(parts[0]), buffers=parts[1:]).load()
    assert isinstance(job, Job)
    return job
