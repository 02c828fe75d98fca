"""Build plait_cuda: the library of the device, its kernels, and the emulation of the driver."""

import importlib.util
import pathlib

from plait_abi.build import DeviceImages, Generate, Library, setup


def folder_of(package: str) -> pathlib.Path:
    """Return the folder of an installed package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"plait_cuda: building needs the package {package}")
    return pathlib.Path(spec.origin).parent


# Scalar functions of pointwise operators, and what reads a call: those of the CPU's kernels.
HEADERS = str(folder_of("plait_core") / "include" / "kernels")
FLAGS = [
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-Wno-psabi",
    "-Wno-unknown-pragmas",
]
SOURCES = ["cpp/kernels/**/*.cpp", "{generated}/kernels/pointwise_*.cpp"]

# Pointwise kernels fuse what the source fuses, as those of the CPU: both give the same numbers.
NVCC = ["-DPLAIT_KERNELS=1", "--expt-relaxed-constexpr", "-diag-suppress=186"]
UNFUSED = ["-fmad=false"]

setup(
    package="plait_cuda",
    generate=[
        Generate(
            ["python", "-m", "plait_ops.emit", "--kernels", "{out}/kernels"],
            inputs=["setup.py"],
            requires=["plait_ops"],
        ),
    ],
    libraries=[
        Library(
            "plait_cuda",
            ["cpp/driver/*.cpp", "cpp/host/*.cpp", *SOURCES],
            flags=["-DPLAIT_HOST=1", "-O2", *FLAGS],
            include_dirs=["cpp", HEADERS],
        ),
        # The driver, emulated, and the kernels for it (docs/design/0050).
        Library(
            "plait_cuda_driver",
            ["emulation/driver/*.cpp"],
            flags=["-O2"],
            include_dirs=[".", "cpp"],
            exports=["cu*", "plait_emulation_*"],
            output="emulation/libcuda.so.1",
        ),
        Library(
            "plait_cuda_cublas",
            ["emulation/cublas/*.cpp"],
            flags=["-O2"],
            include_dirs=[".", "cpp"],
            exports=["cublasLt*", "plait_cublas_*"],
            output="emulation/libcublasLt.so.13",
        ),
        Library(
            "plait_cuda_cudnn",
            ["emulation/cudnn/*.cpp"],
            flags=["-O2"],
            include_dirs=[".", "cpp"],
            exports=["cudnn*", "plait_cudnn_*"],
            output="emulation/libcudnn.so.9",
        ),
        Library(
            "plait_cuda_cupti",
            ["emulation/cupti/*.cpp"],
            flags=["-O2"],
            include_dirs=[".", "cpp"],
            exports=["cupti*", "plait_cupti_*"],
            output="emulation/libcupti.so.13",
        ),
        Library(
            "plait_cuda_nccl",
            ["emulation/nccl/*.cpp"],
            flags=["-O2"],
            include_dirs=[".", "cpp"],
            exports=["nccl*"],
            output="emulation/libnccl.so.2",
        ),
        Library(
            "plait_cuda_kernels",
            ["emulation/kernels/*.cpp", *SOURCES],
            flags={
                "*.cpp": ["-DPLAIT_KERNELS=1", "-O1", *FLAGS],
                "emulation/kernels/*.cpp": ["-O2"],
            },
            include_dirs=[".", "cpp", HEADERS],
            output="emulation/libplait_cuda_kernels.so",
        ),
    ],
    images=[
        DeviceImages(
            SOURCES,
            flags={
                "*.cpp": NVCC,
                "pointwise_*.cpp": UNFUSED,
                "cpp/kernels/pointwise/*": UNFUSED,
                "cpp/kernels/optimizers/*": UNFUSED,
                "cpp/kernels/vision/*": UNFUSED,
            },
            include_dirs=["cpp", HEADERS],
        ),
    ],
)
