"""Build compiled plait packages and plug-ins: parallel, incremental, libraries without Python.

A package calls this from its ``setup.py``; see `plait_abi.build.setup`. Nothing here imports the
compiled runtime, so the helper also builds plait-abi itself.
"""

from __future__ import annotations

from plait_abi.build._errors import BuildError
from plait_abi.build._setup import setup
from plait_abi.build._shipping import ship_sources
from plait_abi.build._targets import DeviceImages, Extension, Generate, Library

__all__ = [
    "BuildError",
    "DeviceImages",
    "Extension",
    "Generate",
    "Library",
    "setup",
    "ship_sources",
]
