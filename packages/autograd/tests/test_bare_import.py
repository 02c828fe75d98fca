"""The package without a tensor type: it imports, and errors name what is missing."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_and_modes_need_no_core_and_no_numpy():
    out = run("""
        import sys
        import plait_autograd as pa
        with pa.no_grad():
            assert not pa.is_grad_enabled()
        assert pa.is_grad_enabled()
        print(sorted(m for m in ("numpy", "plait_core", "plait_nn") if m in sys.modules))
    """)
    assert out.strip() == "[]"


def test_what_is_no_tensor_is_refused():
    out = run("""
        import plait_autograd as pa
        for bad in (lambda: pa.backward(3), lambda: pa.grad_fn("x")):
            try:
                bad()
            except TypeError as error:
                print(error)
    """)
    assert out.splitlines() == [
        "backward: `tensors` must be a tensor or a sequence of tensors, got int",
        "grad_fn: argument must be a tensor, got str",
    ]
