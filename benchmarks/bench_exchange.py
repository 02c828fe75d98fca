"""Tensors exchanged by DLPack, beside PyTorch: by the tables of C functions, and from Python.

    python benchmarks/bench_exchange.py

Nanoseconds, the best of turns.
"""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sysconfig
import tempfile
import timeit
from collections.abc import Callable
from typing import Any

import torch

import plait_abi
import plait_core as pc

TURNS, ROUNDS = 7, 100_000


def compiled(folder: str) -> Any:
    """Return the extension module that `exchange.c` is."""
    target = pathlib.Path(folder, "exchange.so")
    headers = plait_abi.paths()["include"], sysconfig.get_path("include")
    source = pathlib.Path(__file__).with_name("exchange.c")
    flags = ["-O2", "-shared", "-fPIC", *(f"-I{each}" for each in headers)]
    subprocess.run(["cc", *flags, str(source), "-o", str(target)], check=True)
    spec = importlib.util.spec_from_file_location("exchange", target)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python_time(call: Callable[[], Any]) -> float:
    """Return the nanoseconds of a call."""
    return min(timeit.repeat(call, number=ROUNDS // 10, repeat=TURNS)) / (ROUNDS // 10) * 1e9


def main() -> None:
    """Print all figures."""
    tensors = {"plait": pc.ones(8, 8), "torch": torch.ones(8, 8)}
    tables = {name: type(each).__dlpack_c_exchange_api__ for name, each in tensors.items()}
    pairs = [(first, second) for first in tensors for second in tensors]
    best = {pair: [float("inf")] * 3 for pair in pairs}
    with tempfile.TemporaryDirectory() as folder:
        nanoseconds = compiled(folder).nanoseconds
        for _ in range(TURNS):
            for first, second in pairs:
                times = nanoseconds(tensors[first], tables[first], tables[second], ROUNDS)
                best[first, second] = list(map(min, best[first, second], times))
    print("from, to          borrowed  managed, freed  object of the other")
    for (first, second), times in best.items():
        print(f"{first}, {second:10} {times[0]:8.1f} {times[1]:15.1f} {times[2]:20.1f}")
    for name, function in (("plait", pc.from_dlpack), ("torch", torch.from_dlpack)):
        for other, tensor in tensors.items():
            time = python_time(lambda f=function, x=tensor: f(x))
            print(f"{name}.from_dlpack({other}): {time:.0f}")


if __name__ == "__main__":
    main()
