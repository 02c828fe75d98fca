"""Build libplait_tape, as any package with a component of its own does."""

from plait_abi.build import Library, setup

setup(package="plait_tape", libraries=[Library("plait_tape", ["cpp/*.cpp"])])
