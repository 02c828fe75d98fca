"""Build libplait_multiprocessing (arenas, counts, collectives) and its Python binding."""

from plait_abi.build import Extension, Library, setup

setup(
    package="plait_multiprocessing",
    libraries=[
        Library(
            "plait_multiprocessing",
            ["cpp/**/*.cpp", "!cpp/python/*"],
            flags={"collectives.cpp": ["-O3", "-fno-math-errno", "-fno-trapping-math"]},
            include_dirs=["cpp"],
        )
    ],
    extensions=[
        Extension(
            "plait_multiprocessing._shared",
            ["cpp/python/*.cpp"],
            flags=["-O2"],
            include_dirs=["cpp"],
            libraries=["plait_multiprocessing"],
            pybind11=False,
        )
    ],
)
