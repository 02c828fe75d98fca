"""Build libplait_optim: the fused steps."""

from plait_abi.build import Library, setup

setup(
    package="plait_optim",
    libraries=[
        Library(
            "plait_optim",
            ["cpp/**/*.cpp", "!cpp/python/*"],
            flags={"loops.cpp": ["-O3", "-fno-math-errno", "-fno-trapping-math"]},
            include_dirs=["cpp"],
        )
    ],
)
