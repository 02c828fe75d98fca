"""The reproducible mode: the same bits with every instruction set, batch and alignment."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_core.instruction_sets import kernel_levels

HERE = pathlib.Path(__file__).parent
A = pc.from_numpy(np.random.default_rng(2).standard_normal((515, 777), dtype=np.float32))
# The C library chooses its functions by the processor, too: this is one without FMA.
OLD_PROCESSOR = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"


@pytest.fixture
def mode() -> Iterator[None]:
    pc.set_reproducible(True)
    yield
    pc.set_reproducible(False)


def digests(folder: pathlib.Path, level: str, threads: int, **more: str) -> dict[str, str]:
    path = folder / f"{level or 'default'}.json"
    environment = {**os.environ, "PLAIT_CPU": level, "PLAIT_NUM_THREADS": str(threads), **more}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, str(HERE / "reproducible_children.py"), str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    value: dict[str, str] = json.loads(path.read_text())
    return value


@pytest.mark.skipif(len(kernel_levels()) < 2, reason="there is one instruction set")
def test_bits_do_not_depend_on_the_instruction_set(tmp_path: pathlib.Path) -> None:
    best = digests(tmp_path, "", 2)
    avx2 = digests(tmp_path, "avx2", 1)
    base = digests(tmp_path, "base", 1, GLIBC_TUNABLES=OLD_PROCESSOR)
    assert len(best) > 3000
    assert sum(each == "refused" for each in best.values()) < len(best) / 3
    assert {name for name in best if best[name] != avx2[name]} == set()
    assert {name for name in best if best[name] != base[name]} == set()


def shifted(x: Any, by: int) -> Any:
    """Return a copy of x that begins `by` elements after an aligned address."""
    space = pc.empty(x.numel() + by, dtype=x.dtype)
    space[by:] = x.reshape(-1)
    return space[by:].reshape(x.shape)


ANYWHERE = {
    "sum": lambda x: x.sum(),
    "sum of columns": lambda x: x.sum(0),
    "var": lambda x: x.var(1),
    "softmax": lambda x: pc.softmax(x, 1),
    "exp": lambda x: pc.exp(x),
    "mm": lambda x: x @ x.mT,
    "mv": lambda x: x @ x[0],
    "layer_norm": lambda x: pc.layer_norm(x, (777,)),
    "gelu": lambda x: operator("gelu")(x),
}


@pytest.mark.parametrize("name", ANYWHERE)
def test_bits_do_not_depend_on_the_address(mode: None, name: str) -> None:
    whole = ANYWHERE[name](A)
    for by in (1, 3, 8, 15):
        assert pc.equal(ANYWHERE[name](shifted(A, by)), whole), by


REFUSALS: dict[str, Any] = {
    "linalg_eigh": lambda: pc.linalg.eigh(pc.eye(3)),
    "linalg_solve": lambda: pc.linalg.solve(pc.eye(3), pc.ones(3)),
    "linalg_svd": lambda: pc.linalg.svd(pc.eye(3)),
    "lgamma": lambda: pc.lgamma(pc.ones(3, dtype=pc.float64)),
    "special_erfcx": lambda: pc.special.erfcx(pc.ones(3)),
    "multinomial": lambda: pc.multinomial(pc.ones(3), 2),
    "exp": lambda: pc.exp(pc.ones(3, dtype=pc.float64)),
    "softmax": lambda: pc.softmax(pc.ones(3, dtype=pc.float64), 0),
    "normal_": lambda: pc.empty(3, dtype=pc.float64).normal_(),
    "sqrt": lambda: pc.sqrt(pc.ones(3, dtype=pc.complex64)),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_operators_without_a_way_are_refused_by_name(mode: None, name: str) -> None:
    assert pc.is_reproducible() and pc.is_batch_invariant()
    with pytest.raises(NotImplementedError, match=rf"^{name}: .*set_reproducible"):
        REFUSALS[name]()
    pc.set_reproducible(False)
    REFUSALS[name]()


def test_float64_works_without_elementary_functions(mode: None) -> None:
    x = pc.from_numpy(np.random.default_rng(0).standard_normal((40, 50)))
    expected = x.numpy() @ x.numpy().T
    np.testing.assert_allclose((x @ x.mT).numpy(), expected, rtol=1e-12, atol=1e-12)
    assert pc.sqrt(x * x).sum().item() == pytest.approx(x.abs().sum().item())
