"""Build libplait_mpi, the provider of collectives over MPI."""

from plait_abi.build import Library, setup

setup(
    package="plait_mpi",
    libraries=[
        Library(
            "plait_mpi",
            ["cpp/*.cpp"],
            flags={"plugin.cpp": ["-fno-math-errno", "-fno-trapping-math"]},
            include_dirs=["cpp"],
        )
    ],
)
