"""Build libplait_torch: PyTorch's random numbers."""

from plait_abi.build import Library, setup

setup(
    package="plait_torch",
    libraries=[
        Library(
            "plait_torch",
            ["cpp/*.cpp", "cpp/random/*.cpp"],
            flags={
                "*.cpp": ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"],
                "normal_lanes.cpp": ["-ffp-contract=fast", "-Wno-psabi"],
            },
            include_dirs=["cpp"],
        )
    ],
)
