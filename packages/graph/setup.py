"""Build libplait_graph and its Python binding."""

from plait_abi.build import Extension, Library, setup

setup(
    package="plait_graph",
    libraries=[
        Library(
            "plait_graph",
            ["cpp/**/*.cpp", "!cpp/python/*", "!cpp/tool/*"],
            include_dirs=["cpp"],
        )
    ],
    extensions=[
        Extension(
            "plait_graph._graph",
            ["cpp/python/*.cpp"],
            flags=["-O2"],
            include_dirs=["cpp"],
            pybind11=False,
        )
    ],
)
