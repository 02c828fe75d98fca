"""Check that packages import, and declare, only the packages that they may.

    python tools/check_imports.py

Reads every import in ``packages/*/src`` and ``packages/*/tests`` (also inside functions, and
``import_module`` of a constant) and every ``pyproject.toml``. The table below is the layering of
the design; docs/design has the reasons. It also fails for imports of another package's private
modules, for ``import_module`` of a constant, which type checkers and editors do not follow, and for
circles of imports and imports upward within a package (see import_circles.py).
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

import import_circles
from package_graph import ROOT, Package, closure, load_all

__all__ = ["check", "main"]

# The packages, ours and third-party ones, that a package may import at run time.
RUN_TIME: dict[str, tuple[set[str], set[str]]] = {
    "abi": (set(), set()),
    "ops": ({"abi"}, set()),
    "core": ({"abi", "ops"}, {"numpy", "scipy_openblas32"}),
    "autograd": ({"abi", "ops"}, set()),
    "nn": ({"abi", "core"}, set()),
    "func": ({"abi", "ops", "core", "autograd", "nn"}, set()),
    "graph": ({"abi", "ops", "core", "autograd", "nn", "func"}, set()),
    "onnx": ({"abi", "ops", "core", "autograd", "nn", "func", "graph"}, {"numpy", "onnx"}),
    "optim": ({"abi"}, set()),
    "data": (set(), {"numpy", "cloudpickle"}),
    "multiprocessing": ({"abi"}, set()),
    "profiler": ({"abi"}, {"numpy"}),
    "mpi": ({"abi"}, {"mpi4py"}),
    "ucx": ({"abi", "multiprocessing"}, set()),
    "cuda": ({"abi", "core"}, set()),
    "distributed": ({"abi", "core", "autograd", "nn", "multiprocessing"}, set()),
    "ray": ({"abi", "core", "autograd", "distributed"}, {"numpy", "ray"}),
    "conformance": ({"abi", "ops"}, {"numpy", "pytest"}),
}
# Packages above all others, which may import any; and what they may import of each other.
WHOLE: dict[str, set[str]] = {"plait": set(), "torch": {"plait"}}
# Imports of single parts that are never loaded by `import <package>`.
PARTS: dict[str, set[str]] = {
    "plait_abi/build/": {"setuptools", "pybind11"},
    # functions of operators for tvm-ffi, if a program asks for one
    "plait_abi/_tvm_functions.py": {"tvm_ffi"},
    # samples have NumPy references, which emitters and tests use but running programs do not
    "plait_ops/": {"numpy"},
    # of the extra `images`, imported when an image is read
    "plait_data/datasets/_images.py": {"PIL"},
    # the role compiler, whose graphs are plait-graph's
    "plait_conformance/_graphs.py": {"plait_core", "plait_graph"},
    # operators of optimizers, if a graph has some
    "plait_graph/_export.py": {"plait_optim"},
    # a DataFrame of a table, if a program asks for one
    "plait_profiler/_tables.py": {"pandas"},
    # pictures, and a line in the terminal, likewise
    "plait_profiler/_pictures.py": {"matplotlib"},
    "plait_profiler/_watch.py": {"rich"},
    # a progress bar and SummaryWriter, imported when a program asks for them
    "plait_torch/_model_zoo.py": {"tqdm"},
    # use, temperature and processes of a GPU, if a program asks for them
    "plait_torch/_cuda_nvml.py": {"pynvml"},
    "plait_torch/_collate.py": {"numpy"},
    "plait_torch/_comparison.py": {"numpy"},
    "plait_torch/_compiler.py": {"numpy"},
    "plait_torch/_data_utils.py": {"numpy"},
    "plait_torch/_file_writer.py": {"numpy"},
    # points for TensorBoard's projector; what pickles pipes that Python's pickle cannot
    "plait_torch/_embeddings.py": {"numpy", "tensorboard"},
    "plait_torch/_datapipes.py": {"dill"},
    "plait_torch/files.py": {"numpy"},
    "plait_torch/_mapped_file.py": {"numpy"},
    # if a program calls an exported model
    "plait_torch/_onnx.py": {"onnxruntime"},
    "plait_torch/_quasirandom.py": {"numpy"},
    "plait_torch/_sampler_draws.py": {"numpy"},
    "plait_torch/_summaries.py": {"numpy", "tensorboard", "matplotlib"},
    "plait_torch/_tensorboard.py": {"tensorboard"},
    # pictures, when torchvision's functions read and write them
    "plait_torch/_torchvision_images.py": {"numpy", "PIL"},
}

# Private modules that another package imports, each for a reason; the lists may only get shorter.
PRIVATE: dict[str, set[str]] = {
    # functions of core's extension that are no operators, and operators with sparse gradients
    "nn": {"plait_core._core", "plait_core._sparse"},
    # the one writer of checkpoints in several files
    "distributed": {"plait_core._checkpoints._folders"},
    # whether a call is recorded, which decides how the branches of a file run
    "onnx": {"plait_graph._capture"},
    # names for type checkers
    "plait": {"plait_core._operators"},
    # what programs take from private modules of torch, under the names that it has there
    "torch": {
        # names and pickles as PyTorch has them
        "plait_autograd._autograd",
        "plait_nn._functional_call",
        "plait_optim._hooks",
        "plait_optim._lbfgs",
        "plait_optim._state",
        # what PyTorch's format of files is read and written with
        "plait_core._checkpoints._format",
        "plait_core._core",
        "plait_core._tensor._repr",
        "plait_data._default_context",
        "plait_data._loader",
        "plait_data._sampler",
        "plait_nn._conv",
        "plait_nn._dropout",
        "plait_nn._hooks",
        "plait_nn._lazy",
        "plait_nn.utils._norms",
        "plait_nn._loss",
        "plait_nn._normalization",
        "plait_nn._state_dict",
        "plait_optim._groups",
    },
}


_PRIVATE = re.compile(r"plait_\w+(\.[a-z]\w*)*(\._(?!_)\w+)+")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the top-level name of everything a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module.split(".")[0]
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield node.lineno, str(first.value).split(".")[0]


def _allowed(package: Package, packages: dict[str, Package]) -> tuple[set[str], set[str]]:
    if package.name in WHOLE:
        return set(packages) - {"torch", package.name} | WHOLE[package.name], set()
    if package.name not in RUN_TIME:
        raise SystemExit(f"check_imports: add {package.name!r} to RUN_TIME with what it may know")
    return RUN_TIME[package.name]


def _check_sources(package: Package, packages: dict[str, Package]) -> Iterator[str]:
    ours, others = _allowed(package, packages)
    known = {packages[name].module for name in ours & set(packages)} | {package.module} | others
    for path in sorted((package.folder / "src").rglob("*.py")):
        relative = path.relative_to(package.folder / "src").as_posix()
        allowed = set(known).union(
            *(names for part, names in PARTS.items() if relative.startswith(part))
        )
        if relative == f"{package.module}/__init__.py":
            allowed = known
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        rule = f"{package.distribution} may import {', '.join(sorted(allowed)) or 'nothing'}"
        yield from _foreign(path, tree, allowed, rule)


def _private_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each private module that a module imports, by constants."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            # a name of a public module may be a module
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            if _PRIVATE.fullmatch(node.module):
                names = [node.module]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called.lstrip("_") == "import_module":
                names = [str(node.args[0].value)]
        line = getattr(node, "lineno", 0)
        yield from ((line, name) for name in names if _PRIVATE.fullmatch(name))


def _check_private(package: Package) -> Iterator[str]:
    """Yield errors for private modules of other packages, and for entries of PRIVATE in vain."""
    allowed, used = PRIVATE.get(package.name, set()), set()
    for path in sorted((package.folder / "src").rglob("*.py")):
        for line, name in _private_imports(ast.parse(path.read_text(encoding="utf-8"))):
            if name.split(".")[0] == package.module:
                continue
            used.add(name)
            if name not in allowed:
                yield f"{path}:{line}: imports {name}, which is private to another package"
    for name in sorted(allowed - used):
        yield f"check_imports: {package.name} no longer imports {name}; remove it from PRIVATE"


def _check_constants(package: Package) -> Iterator[str]:
    """Yield errors for modules that are imported by a function although their name is constant."""
    for path in sorted((package.folder / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = ast.unparse(node.func).rpartition(".")[2].lstrip("_")
            name = getattr(node.args[0], "value", None)
            if called == "import_module" and isinstance(name, str):
                yield (
                    f"{path}:{node.lineno}: imports {name} by a function, which tools do not "
                    "see; write an import statement"
                )


def _check_tests(package: Package, packages: dict[str, Package]) -> Iterator[str]:
    reached = closure([package.name], packages, tests=True)
    declared = {*package.third_party, *package.test_third_party}
    for name in reached:
        declared |= {*packages[name].third_party}
    known = {packages[name].module for name in reached} | {"pytest"}
    known |= {_module(text) for text in declared}
    if package.name == "torch":
        known |= {"torch", "functorch"}  # the names of plait_torch in its tests
    folder = package.folder / "tests"
    files = sorted(folder.rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in files}
    own = {path.stem for path in files} | {path.name for path in folder.rglob("*")}
    own = own.union(*map(_made_importable, trees.values()))
    rule = f"the [test] extra of {package.distribution} brings {', '.join(sorted(known))}"
    for path, tree in trees.items():
        yield from _foreign(path, tree, known | own | _guarded(tree), rule)


def _made_importable(tree: ast.AST) -> set[str]:
    """Return the names of modules that a conftest puts into sys.modules."""
    return {
        str(node.args[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "spec_from_file_location"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


def _guarded(tree: ast.AST) -> set[str]:
    """Return the imports in a ``try`` that handles their absence."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(
            getattr(handler.type, "id", "") in ("ImportError", "ModuleNotFoundError")
            for handler in node.handlers
        ):
            names |= {name for statement in node.body for _, name in imports(statement)}
    return names


def _foreign(path: pathlib.Path, tree: ast.AST, allowed: set[str], rule: str) -> Iterator[str]:
    for line, name in imports(tree):
        if name not in allowed and name not in sys.stdlib_module_names and name != "__future__":
            yield f"{path}:{line}: imports {name}; {rule}"


def _check_declared(package: Package, packages: dict[str, Package]) -> Iterator[str]:
    ours, others = _allowed(package, packages)
    where = package.folder / "pyproject.toml"
    for name in package.needs:
        if name not in ours:
            yield f"{where}: depends on plait-{name}; allowed: {', '.join(sorted(ours)) or 'none'}"
    for text in package.third_party:
        if _module(text) not in others:
            yield f"{where}: depends on {text}; allowed: {', '.join(sorted(others)) or 'none'}"


def _module(requirement: str) -> str:
    name = requirement
    for mark in "[<>=~!; ":
        name = name.split(mark, 1)[0]
    return name.strip().replace("-", "_")


def check(root: pathlib.Path = ROOT) -> list[str]:
    """Return a line for every import or dependency that breaks the layering."""
    packages = load_all(root)
    results: list[str] = []
    for package in packages.values():
        results += _check_declared(package, packages)
        results += _check_sources(package, packages)
        results += _check_private(package)
        results += _check_constants(package)
        results += import_circles.check(package.folder / "src")
        results += _check_tests(package, packages)
    return [line.replace(f"{root}/", "") for line in results]


def main() -> int:
    """Print imports that break the layering; return 1 if there are any."""
    result = check()
    for line in result:
        print(line, file=sys.stderr)
    if not result:
        print(f"check_imports: {len(load_all())} packages keep the layering")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
