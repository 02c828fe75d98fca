"""Emit C++ from the operator specs and build libplait_ops."""

from plait_abi.build import Generate, Library, setup, ship_sources

LIBRARY = Library(
    "plait_ops",
    ["{generated}/*.cpp", "cpp/**/*.cpp"],
    include_dirs=["cpp", "{generated}", "{generated}/include"],
)

setup(
    package="plait_ops",
    generate=[
        Generate(
            ["python", "-m", "plait_ops.emit", "{out}"],
            inputs=["src/plait_ops/**/*.py"],
            package_files={"include": "plait_ops/include", "ops.json": "plait_ops/ops.json"},
        ),
        ship_sources("plait_ops", [LIBRARY], ["cpp/*.hpp"]),
    ],
    libraries=[LIBRARY],
)
