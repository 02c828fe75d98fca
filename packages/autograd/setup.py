"""Build libplait_autograd and its Python binding."""

from plait_abi.build import Extension, Library, setup

setup(
    package="plait_autograd",
    libraries=[
        Library(
            "plait_autograd",
            ["cpp/**/*.cpp", "!cpp/python/*"],
            include_dirs=["cpp"],
            requires=["plait_ops"],
        )
    ],
    extensions=[
        Extension(
            "plait_autograd._autograd",
            ["cpp/python/*.cpp"],
            flags=["-O2"],
            include_dirs=["cpp"],
            requires=["plait_ops"],
        )
    ],
)
