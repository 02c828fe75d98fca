"""The nodes of gradients as programs for PyTorch see them: ``grad_fn``, and the leaves' `variable`.

The names of nodes are those of plait's operators, in PyTorch's form (``AddBackward0``). Where both
have the same operator by other names, PyTorch's is shown. An operator that plait computes in one
step, or in other steps, keeps the name of its last step: ``F.linear`` is ``LinearBackward0``.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import plait
from plait_autograd import _autograd

__all__ = ["NAMES", "bind", "unbind"]

# plait's node, without "Backward", and PyTorch's
_OPERATORS = {
    "AvgPool2d": "AvgPool2DBackward0",
    "Cast": "ToCopyBackward0",
    "ClampBetween": "ClampBackward1",
    "Conj": "ConjBackward0",
    "Conv2d": "ConvolutionBackward0",
    "Conv2dBackwardInput": "ConvolutionBackward0",
    "Deg2rad": "Deg2RadBackward0",
    "DivTrunc": "DivBackward2",
    "Elu": "EluBackward0",
    "FftC2c": "FftC2CBackward0",
    "FftC2r": "FftC2RBackward0",
    "FftR2c": "FftR2CBackward0",
    "FrexpMantissa": "FrexpBackward0",
    "GeluErf": "GeluBackward0",
    "GeluTanh": "GeluBackward0",
    "IndexPutTensors": "IndexPutBackward0",
    "IndexTensors": "IndexBackward0",
    "LinalgCholesky": "LinalgCholeskyExBackward0",
    "LinalgEigvalsh": "LinalgEighBackward0",
    "LinalgInv": "LinalgInvExBackward0",
    "LinalgLuFactor": "LinalgLuFactorExBackward0",
    "LinalgSolve": "LinalgSolveExBackward0",
    "LinalgSvdvals": "LinalgSvdBackward0",
    "Log1p": "Log1PBackward0",
    "LogOdds": "LogitBackward0",
    "LstsqParts": "LinalgLstsqBackward0",
    "MaskedValues": "MaskedSelectBackward0",
    "MaskedWrite": "MaskedScatterBackward0",
    "Max": "MaxBackward1",
    "MaxDim": "MaxBackward0",
    "MedianDim": "MedianBackward1",
    "Min": "MinBackward1",
    "MinDim": "MinBackward0",
    "Narrow": "SliceBackward0",
    "NativeMaxPool2d": "MaxPool2DWithIndicesBackward0",
    "Norm": "LinalgVectorNormBackward0",
    "PolygammaElements": "PolygammaBackward0",
    "ProdDim": "ProdBackward1",
    "Rad2deg": "Rad2DegBackward0",
    "Relu6": "HardtanhBackward0",
    "ReplaceNonfinite": "NanToNumBackward0",
    "ScatterValue": "ScatterBackward1",
    "Selu": "EluBackward0",
    "SpecialGammainc": "IgammaBackward0",
    "SpecialI0e": "SpecialI0EBackward0",
    "SpecialI1e": "SpecialI1EBackward0",
    "SpecialXlog1py": "SpecialXlog1PyBackward0",
    "Square": "PowBackward0",
    "SqueezeDim": "SqueezeBackward1",
    "ThresholdElements": "ThresholdBackward0",
    "TrueDivide": "DivBackward0",
}
NAMES = {f"{name}Backward": result for name, result in _OPERATORS.items()}
NAMES["CopySlices"] = "torch::autograd::CopySlices"
_KEY = "plait_torch.variable"


def _variable(node: Any) -> Any:
    """The leaf to whose `grad` the node adds; other nodes have no such attribute."""
    if node.name() != "AccumulateGrad":
        raise AttributeError(f"{type(node).__name__!r} object has no attribute 'variable'")
    if _KEY not in node.metadata:
        _note_leaves()
    reference = node.metadata.get(_KEY)
    return None if reference is None else reference()


def _note_leaves() -> None:
    """Note in the node of each leaf that lives which tensor it is.

    Nodes do not refer to tensors. So this looks at all objects that Python's collector knows, at
    what they refer to, and at the variables of functions that run.
    """
    for each in _tensors():
        if each.is_leaf and each.requires_grad:
            node = plait.autograd.graph.get_gradient_edge(each).node
            node.metadata.setdefault(_KEY, weakref.ref(each))


def _tensors() -> Iterator[Any]:
    kind, objects = plait.Tensor, gc.get_objects()
    for start in range(0, len(objects), 1000):
        part = objects[start : start + 1000]
        # `type` looks at no attribute, as isinstance does at lazy objects' `__class__`
        yield from (each for each in part if issubclass(type(each), kind))
        yield from (each for each in gc.get_referents(*part) if issubclass(type(each), kind))
    for frame in list(sys._current_frames().values()):
        current: Any = frame
        while current is not None:
            yield from (each for each in current.f_locals.values() if issubclass(type(each), kind))
            current = current.f_back


def bind() -> None:
    """Show PyTorch's names."""
    _autograd.show_node_names(NAMES)
    node: Any = _autograd.Node
    node.variable = property(_variable)


def unbind() -> None:
    """Show plait's names again."""
    _autograd.show_node_names(None)
    node: Any = _autograd.Node
    del node.variable
