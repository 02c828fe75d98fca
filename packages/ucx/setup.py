"""Build libplait_ucx: messages between processes over UCX."""

from plait_abi.build import Library, setup

setup(
    package="plait_ucx",
    libraries=[
        Library(
            "plait_ucx",
            ["cpp/*.cpp"],
            flags={"plugin.cpp": ["-fno-math-errno", "-fno-trapping-math"]},
            include_dirs=["cpp"],
        )
    ],
)
