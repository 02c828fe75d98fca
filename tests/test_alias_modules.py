"""Each public module has a file below `plait`, from which tools that read code know it."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def test_they_are_as_the_tool_writes_them() -> None:
    command = [sys.executable, "tools/alias_modules.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run tools/alias_modules.py:\n{done.stdout}{done.stderr}"


def test_python_m_runs_them_as_the_real_ones() -> None:
    """A module is a package, which ``python -m`` does not run itself, if the real one is."""
    folder = ROOT / "packages" / "plait" / "src" / "plait"
    checked = 0
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(("plait", *parts)).removesuffix(".__init__")
        if name == "plait" or any(part.startswith("_") for part in parts[:-1]):
            continue
        try:
            spec, real = importlib.util.find_spec(name), importlib.import_module(name)
        except ImportError:  # of an optional library, such as tensorboard
            continue
        assert spec is not None
        if real.__name__ == name or (parts[-1].startswith("_") and parts[-1] != "__init__"):
            continue  # no alias
        assert (spec.submodule_search_locations is not None) == hasattr(real, "__path__"), name
        checked += 1
    assert checked > 30


def test_the_launcher_under_plait() -> None:
    command = [sys.executable, "-m", "plait.distributed.run", "-n", "1", "-m", "this"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and "Beautiful is better than ugly." in done.stdout, done.stderr
