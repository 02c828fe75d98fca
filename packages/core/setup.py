"""Build plait_core: the runtime library, the kernel libraries and the Tensor type."""

from plait_abi.build import Extension, Generate, Library, setup

# Every folder of cpp/ has kernels, but for the two that have parts of their own.
KERNELS = ["cpp/*/*.cpp", "!cpp/runtime/*", "!cpp/python/*", "{generated}/kernels/*.cpp"]
# Kernels compute IEEE values but neither set errno nor trap, which frees the vectoriser.
FLAGS = ["-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]

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
            package_files={
                "stubs/_core.pyi": "plait_core/_core.pyi",
                "stubs/_operators.pyi": "plait_core/_operators.pyi",
                "stubs/linalg.pyi": "plait_core/linalg.pyi",
                "stubs/fft.pyi": "plait_core/fft.pyi",
                "stubs/special.pyi": "plait_core/special.pyi",
            },
        ),
    ],
    libraries=[
        Library("plait_core", ["cpp/runtime/**/*.cpp"], include_dirs=["cpp", "cpp/runtime"]),
        Library("plait_cpu_base", KERNELS, flags=FLAGS, include_dirs=["cpp"]),
        Library(
            "plait_cpu_avx2",
            KERNELS,
            flags=[*FLAGS, "-mavx2", "-mfma", "-mf16c"],
            include_dirs=["cpp"],
            machine="x86_64",
        ),
    ],
    extensions=[
        Extension("plait_core._core", ["cpp/python/*.cpp"], flags=["-O2"], include_dirs=["cpp"])
    ],
)
