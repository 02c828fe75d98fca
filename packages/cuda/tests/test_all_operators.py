"""All operators on the device: those without a kernel are composed of others, or are listed; bad
calls harm nothing; results do not depend on the order in which blocks run.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from test_samples import call, check, main_sample, to_device

import plait_core as pc
from plait_abi import operator
from plait_ops import hostile, specs
from plait_ops.samples import draw
from plait_ops.spec import Operator

HERE = pathlib.Path(__file__).parent

# algorithms whose steps follow one another, so that a CPU is faster (docs/guides/gpu.md)
WITHOUT = {
    "linalg_eig",
    "linalg_eigvals",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_ldl_solve",
}
CALLS = 25
SAMPLES = 12
ANSWERS = (
    BufferError,
    IndexError,
    MemoryError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)
takes_all = pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)


@takes_all
def test_an_operator_runs_on_the_device_or_is_listed(spec: Operator) -> None:
    if spec.name not in WITHOUT:
        check(spec, main_sample(spec), to_device)
        return
    with pytest.raises(NotImplementedError, match="no kernel"):
        call(spec, main_sample(spec), "cuda", to_device)


def moved(value: Any) -> Any:
    """Arrays become tensors of the device; what cannot become one stays what it is."""
    if isinstance(value, np.ndarray):
        try:
            return pc.from_numpy(value).to("cuda")
        except ANSWERS:
            return value
    if isinstance(value, (list, tuple)):
        return type(value)(map(moved, value))
    return value


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@takes_all
def test_hostile_calls_are_answered_and_the_device_lives_on(spec: Operator, emulation: Any) -> None:
    before = emulation.trap()
    for each in hostile.calls(spec, seed=20261121, n=CALLS):
        base, _, overload = each.operator.name.partition(".")
        name = base + each.form + (f".{overload}" if overload and not each.form else "")
        kwargs = {key: moved(value) for key, value in each.kwargs.items()}
        try:
            operator(name)(*moved(each.args), **kwargs)
            pc.cuda.synchronize()
        except ANSWERS as error:
            assert str(error), f"{name}: an error without a text: {error!r}"
    assert emulation.trap() == before, "a kernel did what a GPU would end the context for"


def bits(path: str) -> None:
    """Write the bytes of results of all operators, of some samples each, to a file."""
    pc.manual_seed(0)
    lines = []
    for spec in specs.all():
        if spec.name.startswith("empty"):
            continue  # memory as it was
        content = b""
        for sample in list(draw(spec))[:SAMPLES]:
            try:
                got, changed = call(spec, sample, "cuda", to_device)
            except ANSWERS as error:
                content += type(error).__name__.encode()
                continue
            for x in [each for each in (*got, *changed) if isinstance(each, pc.Tensor)]:
                content += bytes(
                    x.detach().cpu().contiguous().flatten().view(pc.uint8).numpy().tobytes()
                )
        lines.append(f"{spec.name} {content.hex()}\n")
    pathlib.Path(path).write_text("".join(lines))


@pytest.mark.slow
def test_results_do_not_depend_on_the_order_of_blocks(tmp_path: pathlib.Path) -> None:
    files = []
    for seed in ("7", "1234"):
        files.append(tmp_path / seed)
        code = f"import test_all_operators; test_all_operators.bits({str(files[-1])!r})"
        path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        environment = {"PLAIT_CUDA_EMULATION": "1", "PLAIT_CUDA_SEED": seed, "PYTHONPATH": path}
        subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=True)
    first, second = (file.read_text().splitlines() for file in files)
    assert len(first) == len(second) > 700
    different = [a.split()[0] for a, b in zip(first, second, strict=True) if a != b]
    assert different == []


@pytest.mark.slow
def test_no_kernel_races_in_global_memory() -> None:
    words = [sys.executable, "-m", "pytest", "-q", str(HERE / "test_samples.py")]
    environment = {**os.environ, "PLAIT_CUDA_EMULATION": "1", "PLAIT_CUDA_CHECK": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
