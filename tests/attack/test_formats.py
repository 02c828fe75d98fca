"""Changed files of every format that is read: ONNX, TorchScript, PyTorch, NumPy, and our own.

Changes know the format: messages, zips, opcodes of pickles, JSON, code. Each file is a value or an
error of its format; none executes anything, or takes more memory or time than its size allows.
formats_child.py reads them, in a process that is watched.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")

COUNT = 40  # of each format that a round reads
HERE = Path(__file__).parent


def test_changed_files(rounds: Any, tmp_path: Path) -> None:
    for number, source in enumerate(rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        seed = str(source.randrange(2**31))
        command = [sys.executable, str(HERE / "formats_child.py"), "all", seed, "0", str(COUNT)]
        done = subprocess.run(
            [*command, str(folder)], capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, (seed, done.returncode, done.stderr[-8000:])
        counts = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(counts) >= 9
        assert all(read + refused == COUNT for _, read, refused in counts)
        assert sum(read for _, read, _ in counts) > COUNT / 2
        assert sum(refused for _, _, refused in counts) > COUNT


def test_changes_are_the_same_for_a_seed(rounds: Any) -> None:
    """A finding can be repeated: the changes depend on nothing but the source of numbers."""
    import mutations

    text = b"def f(x: Tensor) -> Tensor:\n  return torch.add(x, 1)\n"
    pickled = b"\x80\x02}(X\x01\x00\x00\x00aK\x01u."
    for source in rounds:
        seed = source.randrange(2**31)
        for change, data in (
            (mutations.code_changed, text),
            (mutations.pickle_changed, pickled),
            (mutations.json_changed, b'{"a": [1, {"b": 2}]}'),
            (mutations.bytes_changed, text),
        ):
            one, other = (change(random.Random(seed), data) for _ in range(2))
            assert one == other
