"""Models of plait as ONNX files, and ONNX files as modules of plait.

>>> import plait_core as pc, plait_onnx
>>> model = plait_onnx.export(lambda x: x.relu(), (pc.ones(2),))
>>> model.to_proto().graph.node[0].op_type
'Relu'
"""

from plait_onnx._export import export
from plait_onnx._model import ExportedModel

__all__ = ["ExportedModel", "export"]

__version__ = "0.2.0"
