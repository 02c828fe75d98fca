"""Build libplait_profiler (the recorder) and its Python binding."""

from plait_abi.build import Extension, Library, setup

setup(
    package="plait_profiler",
    libraries=[Library("plait_profiler", ["cpp/**/*.cpp", "!cpp/python/*"], include_dirs=["cpp"])],
    extensions=[
        Extension(
            "plait_profiler._observer",
            ["cpp/python/*.cpp"],
            flags=["-O2"],
            include_dirs=["cpp"],
            libraries=["plait_profiler"],
            pybind11=False,
        )
    ],
)
