"""Fixtures for the tests of the binding: a plug-in of operators, and new interpreters."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import plait_abi

HERE = Path(__file__).parent


Compile = Callable[..., str]


@pytest.fixture(scope="session")
def compile_cpp(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that compiles a C++ file of this folder with nothing but the headers."""

    def compiled(name: str, *options: str) -> str:
        result = tmp_path_factory.mktemp("compiled") / name
        cxx = os.environ.get("CXX", "c++").split()
        flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *options]
        extra = os.environ.get("PLAIT_BUILD_FLAGS", "").split()
        source, include = str(HERE / f"{name}.cpp"), f"-I{plait_abi.paths()['include']}"
        command = [*cxx, *flags, *extra, include, source, "-ldl", "-o", str(result)]
        subprocess.run(command, check=True)
        return str(result)

    return compiled


@pytest.fixture(scope="session")
def probe_path(compile_cpp: Compile) -> str:
    """Return the plug-in of probe.cpp."""
    return compile_cpp("probe", "-shared", "-fPIC", "-fvisibility=hidden")


@pytest.fixture(scope="session")
def probe(probe_path: str) -> ctypes.CDLL:
    """Load the plug-in and return its functions for tests of the host role."""
    plait_abi.load(probe_path)
    library = ctypes.CDLL(probe_path)
    library.probe_hold.argtypes = [ctypes.py_object]
    library.probe_apply.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_uint64]
    library.probe_site.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    return library


@pytest.fixture
def fresh(probe_path: str) -> Callable[[str], str]:
    """Return a function that runs code in a new interpreter and returns what it printed."""

    quiet = "ignore:This process:DeprecationWarning"

    def run(code: str) -> str:
        start = f"PROBE = {probe_path!r}\n"
        done = subprocess.run(
            # from 3.12 on Python warns of forks beside threads, which are what is tested
            [sys.executable, "-X", "faulthandler", "-W", quiet, "-c", start + code],
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
        assert done.stderr == ""
        return done.stdout

    return run
