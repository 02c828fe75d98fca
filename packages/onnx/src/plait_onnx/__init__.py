"""Models of plait as ONNX files, and ONNX files as modules of plait.

>>> import plait_onnx
>>> plait_onnx.__version__
'0.2.0'
"""

__all__: list[str] = []

__version__ = "0.2.0"
