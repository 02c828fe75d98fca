"""The functions of the table, in a module for each kind of operator."""

from plait_onnx._operators import (
    _creation,
    _indexing,
    _matrices,
    _networks,
    _pointwise,
    _recurrent,
    _reductions,
    _shapes,
    _vision,
)

__all__ = [
    "_creation",
    "_indexing",
    "_matrices",
    "_networks",
    "_pointwise",
    "_recurrent",
    "_reductions",
    "_shapes",
    "_vision",
]
