"""What is installed belongs together: the packages' versions, and the libraries they load."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import plait_abi


def test_modules_state_the_version_of_their_distribution() -> None:
    """Of the packages that are installed, as users may install some of them."""
    result = 0
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name != "plait" and not name.startswith("plait-"):
            continue
        if name in ("plait-mpi", "plait-ray", "plait-ucx"):  # need more of the machine
            continue
        module = importlib.import_module(name.replace("-", "_"))
        stated = getattr(module, "__version__", None)
        assert stated in (None, distribution.version), name
        result += 1
    assert result >= 11  # plait and what it needs


def test_components_and_kernels_are_there() -> None:
    active = [record for record in plait_abi.report() if record.active]
    assert {r.name for r in active if r.kind == "role"} >= {"allocator", "engine", "executor"}
    assert sum(r.kind == "kernel" for r in active) > 300


def test_a_program_written_for_pytorch_runs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "(x * x).sum().backward()\n"
        "print(torch.__version__, x.grad.tolist())\n"
    )
    command = [sys.executable, "-m", "plait.torch", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2.13.0+plait [2.0, 2.0]\n"
