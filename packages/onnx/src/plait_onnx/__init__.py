"""Models of plait as ONNX files, and ONNX files as modules of plait.

>>> import plait_core as pc, plait_onnx
>>> model = plait_onnx.export(lambda x: x.relu(), (pc.ones(2),))
>>> model.to_proto().graph.node[0].op_type
'Relu'
>>> plait_onnx.load(model.to_proto())(pc.tensor([-1.0, 1.0])).tolist()
[0.0, 1.0]
"""

from plait_onnx._export import export
from plait_onnx._import import ModelError, OnnxModule, load
from plait_onnx._model import ExportedModel

__all__ = ["ExportedModel", "ModelError", "OnnxModule", "export", "load"]

__version__ = "0.2.0"
