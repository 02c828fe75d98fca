"""The modules of the workers, importable here and in spawned processes."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

_HERE = pathlib.Path(__file__).parent
sys.path.append(str(_HERE))  # spawned processes get it
for _name in ("mp_workers", "pool_tasks"):
    _spec = importlib.util.spec_from_file_location(_name, _HERE / f"{_name}.py")
    assert _spec is not None and _spec.loader is not None
    _module = importlib.util.module_from_spec(_spec)
    sys.modules[_name] = _module
    _spec.loader.exec_module(_module)


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def context(request):
    """A context of each start method."""
    import plait_multiprocessing as mp

    return mp.get_context(request.param)
