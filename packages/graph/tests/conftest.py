"""Fixtures: files of graphs, and the programs that run them without Python."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_abi

HERE = Path(__file__).parent
NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "float16": "F16",
    "uint32": "U32",
    "int32": "I32",
    "float32": "F32",
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
    "complex64": "C64",
}


def write_tensors(
    path: Path, texts: dict[str, str], arrays: dict[str, np.ndarray[Any, Any]]
) -> Path:
    """Write a safetensors file with the texts as its metadata."""
    header: dict[str, Any] = {"__metadata__": texts}
    data = b""
    for name, array in arrays.items():
        end = len(data) + array.nbytes
        dtype, shape = NAMES[array.dtype.name], list(array.shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), end]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray[Any, Any]]]:
    """Read what `write_tensors` writes."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    texts = header.pop("__metadata__", {})
    dtypes = {code: name for name, code in NAMES.items()}
    arrays = {}
    for name, entry in header.items():
        begin, end = (start + n for n in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], dtypes[entry["dtype"]])
        arrays[name] = array.reshape(entry["shape"])
    return texts, arrays


@pytest.fixture(scope="session")
def save_tensors() -> Callable[[Path, dict[str, str], dict[str, Any]], Path]:
    """Return `write_tensors`."""
    return write_tensors


@pytest.fixture(scope="session")
def load_tensors() -> Callable[[Path], tuple[dict[str, str], dict[str, Any]]]:
    """Return `read_tensors`."""
    return read_tensors


@pytest.fixture(scope="session")
def libraries() -> str:
    """Return the folders of plait's libraries, separated by colons."""
    packages = ("abi", "ops", "core", "optim", "graph")
    return ":".join(plait_abi.paths(f"plait_{name}")["lib"] for name in packages)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that compiles a program and links it with libplait_run.so."""
    folder = tmp_path_factory.mktemp("programs")
    graph = plait_abi.paths("plait_graph")

    def compile_program(name: str, *sources: Path, standard: str = "c++17") -> Path:
        compiler = os.environ.get("CC" if standard == "c99" else "CXX", "").split()
        command = compiler or ["cc" if standard == "c99" else "c++"]
        command += [f"-std={standard}", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        command += os.environ.get("PLAIT_BUILD_FLAGS", "").split()
        folders = [graph["include"], plait_abi.paths("plait_abi")["include"], HERE.parent / "cpp"]
        command += [*(f"-I{folder}" for folder in folders), *map(str, sources)]
        command += [graph["libplait_run.so"], f"-Wl,-rpath,{graph['lib']}", "-pthread", "-ldl"]
        out = folder / name
        subprocess.run([*command, "-o", str(out)], check=True)
        return out

    return compile_program


@pytest.fixture(scope="session")
def plait_run(compiled: Callable[..., Path]) -> Path:
    """Return the command-line program plait-run."""
    return compiled("plait-run", *sorted((HERE.parent / "cpp" / "tool").glob("*.cpp")))
