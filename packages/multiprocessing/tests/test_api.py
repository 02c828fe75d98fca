"""The package can replace the standard module."""

from __future__ import annotations

import inspect
import multiprocessing
import multiprocessing.pool
import subprocess
import sys

import numpy as np
import pytest

import plait_core as pc
import plait_multiprocessing as mp


def test_every_public_name_of_the_standard_module_is_there() -> None:
    missing = [name for name in multiprocessing.__all__ if not hasattr(mp, name)]
    assert not missing
    assert issubclass(mp.pool.Pool, multiprocessing.pool.Pool)
    assert mp.pool.ThreadPool is multiprocessing.pool.ThreadPool
    assert set(mp.__all__) <= set(dir(mp))
    with pytest.raises(AttributeError, match="plait_multiprocessing"):
        mp.nothing_of_the_kind  # noqa: B018


def test_the_modules_of_the_standard_module_are_there() -> None:
    code = (
        "import multiprocessing, plait_multiprocessing as mp\n"
        "from plait_multiprocessing.pool import ThreadPool\n"
        "from plait_multiprocessing.managers import BaseManager, SyncManager, ValueProxy\n"
        "from plait_multiprocessing.connection import Client, Listener, answer_challenge, wait\n"
        "from plait_multiprocessing.shared_memory import SharedMemory\n"
        "import plait_multiprocessing.dummy as dummy, plait_multiprocessing.dummy.connection\n"
        "assert ThreadPool is multiprocessing.pool.ThreadPool and mp.dummy is dummy\n"
        "assert Client is mp.Client and mp.connection.wait is wait\n"
        "assert issubclass(SyncManager, BaseManager) and callable(mp.spawn)\n"
        "try:\n"
        "    import plait_multiprocessing.nowhere\n"
        "except ModuleNotFoundError as error:\n"
        "    assert error.name == 'plait_multiprocessing.nowhere'\n"
        "else:\n"
        "    raise AssertionError('found')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_signatures_are_the_standard_module_s() -> None:
    for name in ("Queue", "JoinableQueue", "Pipe", "Pool", "Process", "Value", "Barrier"):
        ours = list(inspect.signature(getattr(mp, name)).parameters)
        assert ours == list(inspect.signature(getattr(multiprocessing, name)).parameters), name


def test_the_start_method_is_one_for_both_modules() -> None:
    code = (
        "import multiprocessing, plait_multiprocessing as mp\n"
        "assert mp.get_start_method(allow_none=True) is None\n"
        "mp.set_start_method('spawn')\n"
        "assert multiprocessing.get_start_method() == 'spawn' == mp.get_start_method()\n"
        "assert type(mp.get_context()).__name__ == 'SpawnContext'\n"
        "assert mp.get_context().__module__.startswith('plait_multiprocessing')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert mp.get_all_start_methods() == multiprocessing.get_all_start_methods()
    with pytest.raises(ValueError, match="nope"):
        mp.get_context("nope")


def test_locks_values_and_arrays_work_with_its_contexts() -> None:
    context = mp.get_context("fork")
    value, array, event = context.Value("i", 3), context.Array("d", 2), context.Event()
    with value.get_lock(), context.Lock():
        value.value += 1
    array[1] = 2.5
    event.set()
    assert value.value == 4 and array[:] == [0.0, 2.5] and event.is_set()


def test_one_sharing_strategy() -> None:
    assert mp.get_all_sharing_strategies() == {mp.get_sharing_strategy()}
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="file_system"):
        mp.set_sharing_strategy("file_system")


def test_it_needs_neither_core_nor_numpy() -> None:
    code = (
        "import sys, plait_multiprocessing as mp\n"
        "q = mp.SimpleQueue(); q.put({'a': [1]}); assert q.get() == {'a': [1]}\n"
        "assert not {'numpy', 'plait_core', 'plait_ops'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_error_on_other_systems_names_linux() -> None:
    code = (
        "import sys; sys.platform = 'darwin'\n"
        "try:\n    import plait_multiprocessing\n"
        "except ImportError as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "Linux is required" in out.stdout


def test_a_name_in_a_standard_pickle_is_refused() -> None:
    import pickle

    with pytest.raises(TypeError, match="channel of plait_multiprocessing"):
        pickle.dumps(mp.Group(1))
    shared = pc.ones(3).share_memory_()
    copy = pickle.loads(pickle.dumps(shared))  # standard pickles hold values
    copy[0] = 5
    assert shared[0] == 1 and not copy.is_shared()
    assert np.array_equal(shared.numpy(), [1, 1, 1])
