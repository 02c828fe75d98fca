"""Build the layer of batched tensors."""

from plait_abi.build import Extension, setup

setup(
    package="plait_func",
    extensions=[
        Extension(
            "plait_func._layer",
            ["cpp/*.cpp"],
            flags=["-O2"],
            include_dirs=["cpp"],
            requires=["plait_core"],
            pybind11=False,
        )
    ],
)
