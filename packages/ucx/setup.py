"""Build libplait_ucx: the meeting of a job's processes, and their messages over UCX."""

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
