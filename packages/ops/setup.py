"""Emit C++ from the operator specs and build libplait_ops."""

from plait_abi.build import Generate, Library, setup

setup(
    package="plait_ops",
    generate=[
        Generate(
            ["python", "-m", "plait_ops.emit", "{out}"],
            inputs=["src/plait_ops/**/*.py"],
            package_files={"include": "plait_ops/include", "ops.json": "plait_ops/ops.json"},
        )
    ],
    libraries=[
        Library(
            "plait_ops",
            ["{generated}/**/*.cpp", "cpp/**/*.cpp"],
            include_dirs=["cpp", "{generated}", "{generated}/include"],
        )
    ],
)
