"""ONNX files as modules: `load`.

Each operator has an entry in a table, which a file for its topic adds.
"""

from plait_onnx._import import (
    _control_flow as _control_flow,
    _convolution as _convolution,
    _indexing as _indexing,
    _linear as _linear,
    _losses as _losses,
    _norms as _norms,
    _pointwise as _pointwise,
    _pooling as _pooling,
    _quantization as _quantization,
    _random as _random,
    _recurrent as _recurrent,
    _reductions as _reductions,
    _resize as _resize,
    _sequences as _sequences,
    _shapes as _shapes,
    _signal as _signal,
    _text as _text,
)
from plait_onnx._import._errors import ModelError
from plait_onnx._import._model import OnnxModule, load

__all__ = ["ModelError", "OnnxModule", "load"]
