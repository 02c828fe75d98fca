"""The module of the workers, importable here and in spawned processes."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

_PATH = pathlib.Path(__file__).with_name("mp_workers.py")
_spec = importlib.util.spec_from_file_location("mp_workers", _PATH)
assert _spec is not None and _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["mp_workers"] = _module
sys.path.append(str(_PATH.parent))  # spawned processes get it
_spec.loader.exec_module(_module)


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def context(request):
    """A context of each start method."""
    import plait_multiprocessing as mp

    return mp.get_context(request.param)
