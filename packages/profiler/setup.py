"""Build libplait_profiler: the recorder."""

from plait_abi.build import Library, setup

setup(
    package="plait_profiler",
    libraries=[Library("plait_profiler", ["cpp/**/*.cpp", "!cpp/python/*"], include_dirs=["cpp"])],
)
