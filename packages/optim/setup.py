"""Build libplait_optim: the fused steps."""

from plait_abi.build import Library, setup, ship_sources

LIBRARY = Library(
    "plait_optim",
    ["cpp/**/*.cpp", "!cpp/python/*"],
    # with FMA the loops would round otherwise than without
    flags={
        "*.cpp": ["-ffp-contract=off"],
        "loops.cpp": ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"],
    },
    include_dirs=["cpp"],
)

setup(
    package="plait_optim",
    generate=[ship_sources("plait_optim", [LIBRARY], ["cpp/*.hpp"])],
    libraries=[LIBRARY],
)
