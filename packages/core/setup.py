"""Build plait_core: the runtime library, the kernel libraries and the Tensor type."""

from plait_abi.build import Extension, Library, setup

KERNELS = ["cpp/kernels/**/*.cpp", "{generated}/**/*.cpp"]
# Kernels compute IEEE values but neither set errno nor trap, which frees the vectoriser.
KERNEL_FLAGS = ["-fno-math-errno", "-fno-trapping-math"]

setup(
    package="plait_core",
    libraries=[
        Library("plait_core", ["cpp/runtime/**/*.cpp"], include_dirs=["cpp"]),
        Library(
            "plait_cpu_base",
            KERNELS,
            flags=KERNEL_FLAGS,
            include_dirs=["cpp", "{generated}"],
            requires=["plait_ops"],
        ),
        Library(
            "plait_cpu_avx2",
            KERNELS,
            flags=[*KERNEL_FLAGS, "-mavx2", "-mfma", "-mf16c"],
            include_dirs=["cpp", "{generated}"],
            requires=["plait_ops"],
            machine="x86_64",
        ),
    ],
    extensions=[
        Extension(
            "plait_core._core",
            ["cpp/python/*.cpp"],
            flags=["-O2"],
            include_dirs=["cpp"],
            requires=["plait_ops"],
        )
    ],
)
