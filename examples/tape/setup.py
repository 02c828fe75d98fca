"""Build libplait_tape, as any package with its own component does."""

from plait_abi.build import Library, setup

setup(package="plait_tape", libraries=[Library("plait_tape", ["cpp/*.cpp"])])
