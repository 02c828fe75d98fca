"""Build plait_core: the runtime library, the kernel libraries and the Tensor type."""

import os
import pathlib
import shutil

from plait_abi.build import Extension, Generate, Library, setup, ship_sources

# Every folder of cpp/ has kernels, but for the three that have parts of their own.
KERNELS = [
    "cpp/*/*.cpp",
    "!cpp/runtime/*",
    "!cpp/python/*",
    "!cpp/cpython/*",
    "{generated}/kernels/*.cpp",
]
# Kernels compute IEEE values but neither set errno nor trap, which frees the vectoriser. Products
# and sums are fused where the source says so, not where an instruction set has the instruction.
FLAGS = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-Wno-psabi"]
# A loop of a few instructions that straddles a line of the instruction cache takes up to twice the
# time, and which loops do depends on the code before them.
FLAGS += ["-falign-loops=32"]
# GCC would follow a comparison twice through a polynomial, once for each outcome. Clang has no such
# flag and would say so.
POINTWISE = ["-fno-thread-jumps", "-Wno-ignored-optimization-argument"]
# Sources without fused operations, of their own or in templates, and those of LAPACK.
NOTHING_FUSED = [
    "!cpp/joining/*",
    "!cpp/pooling/*",
    "!cpp/sorting/*",
    *(f"!cpp/creation/{name}.cpp" for name in ("copies", "creation", "triangles")),
    *(f"!cpp/indexing/{name}.cpp" for name in ("embedding", "indexing", "nonzero", "scattering")),
    "!cpp/convolution/unfold_backward.cpp",
    *(f"!cpp/linalg/{name}.cpp" for name in ("cholesky", "determinants", "eigenvalues", "lapack")),
    *(f"!cpp/linalg/{name}.cpp" for name in ("ldl", "least_squares", "lu", "matrix_functions")),
    *(f"!cpp/linalg/{name}.cpp" for name in ("qr", "svd", "systems")),
    "!cpp/loss/nll_loss.cpp",
    *(f"!cpp/reduction/{name}.cpp" for name in ("bounds", "extremes", "ranking", "reductions")),
    "!cpp/reduction/scans_extremes.cpp",
]

# What kernels of other devices are compiled with: scalar functions, and what reads a call.
HEADERS = ["cpp/pointwise/*.h", "cpp/*/sample_gradients.h"]
HEADERS += [f"cpp/{name}.h" for name in ("loss/binary_losses", "loss/losses", "random/rejection")]
HEADERS += ["cpp/reduction/covariance.h", "cpp/vision/*.h"]
HEADERS += [f"cpp/kernel/{name}.h" for name in ("fused", "fused_exact", "half", "kernel")]
HEADERS += [f"cpp/kernel/{name}.h" for name in ("number_conversion", "plan", "vec")]


def copy_headers(out: pathlib.Path) -> None:
    """Copy the headers for kernel libraries of other packages, with their folders."""
    for pattern in HEADERS:
        for header in pathlib.Path().glob(pattern):
            target = out / "headers" / header.relative_to("cpp")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(header, target)


LEVELS = [
    Library(
        "plait_cpu_base",
        KERNELS,
        flags={"*.cpp": FLAGS, "pointwise_*.cpp": POINTWISE},
        include_dirs=["cpp"],
    ),
    Library(
        "plait_cpu_avx2",
        KERNELS,
        flags={
            "*.cpp": [*FLAGS, "-mavx2", "-mfma", "-mf16c"],
            "pointwise_*.cpp": POINTWISE,
        },
        include_dirs=["cpp"],
        machine="x86_64",
    ),
    # The numbers of the library above without its instructions (docs/design/0029).
    Library(
        "plait_cpu_exact",
        [*KERNELS, *NOTHING_FUSED],
        flags=[*FLAGS, "-O2", "-DPLAIT_EXACT"],
        include_dirs=["cpp"],
        machine="x86_64",
    ),
]
ONE_THREAD = "cpp/runtime/one_thread.cpp"
RUNTIME = Library(
    "plait_core",
    ["cpp/runtime/**/*.cpp", f"!{ONE_THREAD}"],
    include_dirs=["cpp", "cpp/runtime"],
)
# The runtime of WebAssembly (docs/design/0060).
WASM_RUNTIME = Library(
    "plait_core_wasm",
    [ONE_THREAD, "cpp/runtime/plugin.cpp", "cpp/runtime/random.cpp"],
    include_dirs=["cpp", "cpp/runtime"],
    machine="wasm32",
)
# What `plait_graph.bundle` compiles: a runtime and the kernels of one level of processors.
SHIPPED = [RUNTIME, WASM_RUNTIME, *(each for each in LEVELS if each.name != "plait_cpu_exact")]


def has_avx2() -> bool:
    """Return whether this machine's processors have what libplait_cpu_avx2 needs."""
    try:
        words = pathlib.Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return False
    return {"avx2", "fma", "f16c"} <= set(words)


def levels() -> list[Library]:
    """Return the libraries of kernels: one for each level of processors.

    With PLAIT_LEVELS=native in the environment only the one that this machine runs is built, which
    takes a third of the time. Libraries of other levels, of an earlier build in place, are removed.
    """
    setting = os.environ.get("PLAIT_LEVELS", "")
    if setting not in ("", "all", "native"):
        raise SystemExit(f"PLAIT_LEVELS: all or native is required; got {setting!r}")
    libraries = LEVELS
    if setting == "native":
        native = "plait_cpu_avx2" if has_avx2() else "plait_cpu_base"
        libraries = [each for each in LEVELS if each.name == native]
        for each in LEVELS:
            if each.name != native:
                pathlib.Path(f"src/plait_core/lib/lib{each.name}.so").unlink(missing_ok=True)
    return libraries


setup(
    package="plait_core",
    generate=[
        Generate(
            ["python", "-m", "plait_ops.emit", "--kernels", "{out}/kernels"],
            inputs=["setup.py"],
            requires=["plait_ops"],
        ),
        Generate(
            ["python", "stubs/assemble.py", "{out}/stubs"],
            inputs=["stubs/*"],
            requires=["plait_ops"],
            package_files={"stubs": "plait_core"},
        ),
        Generate(
            copy_headers,
            inputs=HEADERS,
            package_files={"headers": "plait_core/include/kernels"},
        ),
        ship_sources("plait_core", SHIPPED, ["cpp/*/*.h", "cpp/runtime/*.hpp"]),
    ],
    libraries=[RUNTIME, *levels()],
    extensions=[
        Extension(
            "plait_core._core",
            ["cpp/python/**/*.cpp", "cpp/cpython/*.cpp"],
            flags=["-O2"],
            include_dirs=["cpp", "cpp/python", "src/plait_core/include"],
        )
    ],
)
