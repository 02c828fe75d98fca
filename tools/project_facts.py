"""Write what package indexes show of all packages: classifiers, keywords, addresses.

    python tools/project_facts.py            write them into each packages/*/pyproject.toml
    python tools/project_facts.py --check    name the files that differ

The facts stand here. `REPOSITORY` is the only place with the address of the repository: whoever
publishes a release sets this line and runs the tool.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections.abc import Sequence

from package_graph import ROOT, Package, load_all

__all__ = ["REPOSITORY", "main", "text_of"]

REPOSITORY = "https://plait.example/plait"  # a reserved name until a release is published

_CLASSIFIERS = (
    "Development Status :: 4 - Beta",
    "Intended Audience :: Developers",
    "Intended Audience :: Science/Research",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Python :: 3",
    *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)),
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Typing :: Typed",
)
_COMPILED = "Programming Language :: C++"
_OF_CUDA = "Environment :: GPU :: NVIDIA CUDA"
_KEYWORDS = ("deep learning", "tensors", "neural networks")
_OWN_KEYWORDS = {
    "abi": ("C ABI", "DLPack"),
    "autograd": ("automatic differentiation",),
    "conformance": ("pytest",),
    "core": ("NumPy", "array API"),
    "cuda": ("CUDA", "GPU"),
    "data": ("data loading",),
    "distributed": ("distributed training",),
    "func": ("vmap", "automatic differentiation"),
    "graph": ("compiler", "inference"),
    "mpi": ("MPI", "distributed training"),
    "multiprocessing": ("shared memory",),
    "nn": ("layers",),
    "onnx": ("ONNX",),
    "ops": ("operators",),
    "optim": ("optimizers",),
    "plait": ("automatic differentiation", "PyTorch"),
    "profiler": ("profiling",),
    "ray": ("Ray", "distributed training"),
    "torch": ("PyTorch",),
    "ucx": ("UCX", "distributed training"),
}
_URLS = {
    "Homepage": "",
    "Source": "",
    "Issues": "/issues",
    "Changelog": "/blob/main/CHANGELOG.md",
}
_WRITTEN = re.compile(r"(?ms)^(?:keywords|classifiers) = \[.*?\]\n|^\[project\.urls\]\n.*?\n(?=\[)")
_AUTHORS = re.compile(r"(?m)^authors = .*\n")
_TOOLS = re.compile(r"(?m)^\[tool\.setuptools")


def _list(name: str, values: Sequence[str]) -> str:
    lines = "".join(f'    "{value}",\n' for value in values)
    return f"{name} = [\n{lines}]\n"


def text_of(package: Package, text: str) -> str:
    """Return the text of a package's pyproject.toml with its facts."""
    classifiers = [*_CLASSIFIERS]
    classifiers += [_COMPILED] if package.compiled else []
    classifiers += [_OF_CUDA] if package.name == "cuda" else []
    facts = _list("keywords", (*_KEYWORDS, *_OWN_KEYWORDS[package.name]))
    facts += _list("classifiers", sorted(classifiers))
    urls = "".join(f'{name} = "{REPOSITORY}{path}"\n' for name, path in _URLS.items())
    text = _WRITTEN.sub("", text)
    text = _AUTHORS.sub(lambda match: match[0] + facts, text, count=1)
    return _TOOLS.sub(lambda match: f"[project.urls]\n{urls}\n{match[0]}", text, count=1)


def main(arguments: Sequence[str], root: pathlib.Path = ROOT) -> int:
    """Write or check; return 1 if files differ in a check."""
    parser = argparse.ArgumentParser("tools/project_facts.py")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    wrong = 0
    for package in load_all(root).values():
        path = package.folder / "pyproject.toml"
        text = path.read_text(encoding="utf-8")
        new = text_of(package, text)
        if new == text:
            continue
        wrong += 1
        print(path.relative_to(root))
        if not check:
            path.write_text(new, encoding="utf-8")
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
