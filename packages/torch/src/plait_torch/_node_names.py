"""The nodes of gradients as programs for PyTorch see them: ``grad_fn``, and the leaves' `variable`.

The names of nodes are those of plait's operators, in PyTorch's form (``AddBackward0``). Where both
have the same operator by other names, PyTorch's is shown. An operator that is one step in PyTorch
and several here names the node of its last step (`STEPS`). One that is one step here and several in
PyTorch has the name of PyTorch's last step, which may depend on its arguments: ``F.linear`` of rows
is ``AddmmBackward0``. Functions that are written in Python keep the name of their last step.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import plait
from plait_autograd import _autograd
from plait_torch import _saved_values

__all__ = ["NAMES", "STEPS", "bind", "unbind"]

# plait's node, without "Backward", and PyTorch's
_OPERATORS = {
    "AvgPool2d": "AvgPool2DBackward0",
    "Cast": "ToCopyBackward0",
    "ClampBetween": "ClampBackward1",
    "Conj": "ConjBackward0",
    "Copy": "torch::autograd::CopyBackwards",
    "FloorDivide": "torch::autograd::NotImplemented",
    "Conv2d": "ConvolutionBackward0",
    "Conv2dBackwardInput": "ConvolutionBackward0",
    "Deg2rad": "Deg2RadBackward0",
    "Dense": "CloneBackward0",
    "DivTrunc": "DivBackward2",
    "Elu": "EluBackward0",
    "FftC2c": "FftC2CBackward0",
    "FftC2r": "FftC2RBackward0",
    "FftR2c": "FftR2CBackward0",
    "FrexpMantissa": "FrexpBackward0",
    "Heaviside": "torch::autograd::NotImplemented",
    "Imag": "SelectBackward0",
    "Real": "SelectBackward0",
    "UnsafeChunk": "UnsafeSplitBackward0",
    "GeluErf": "GeluBackward0",
    "GeluTanh": "GeluBackward0",
    "IndexPutTensors": "IndexPutBackward0",
    "IndexTensors": "IndexBackward0",
    "LinalgCholesky": "LinalgCholeskyExBackward0",
    "SymmetricEigenvalues": "LinalgEighBackward0",
    "LinalgInv": "LinalgInvExBackward0",
    "LinalgLuFactor": "LinalgLuFactorExBackward0",
    "SolveByFactors": "LinalgSolveExBackward0",
    "SingularValues": "LinalgSvdBackward0",
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
    "Pad": "ConstantPadNdBackward0",
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
    "AttentionForward": "ScaledDotProductFlashAttentionForCpuBackward0",
    "BceElements": "BinaryCrossEntropyBackward0",
    "EuclideanDistances": "CdistBackward0",
    "LinalgEigvals": "LinalgEigBackward0",
    "LuUnpack": "LinalgLuBackward0",
    "NanmedianDim": "NanmedianBackward1",
    "NativeDropout": "MulBackward0",
    "NextafterElements": "NextafterBackward0",
    "ReluElements": "ReluBackward0",
    "Softsign": "DivBackward0",
    "SpecialNdtr": "MulBackward1",
    "Tanhshrink": "SubBackward0",
    "PreluElements": "RreluWithNoiseBackward0",
    # of operators of several steps
    "AdaptiveAvgPool2d": "AdaptiveAvgPool2DBackward0",
    "BatchNormBy": "NativeBatchNormBackward0",
    "Chunk": "SplitBackward0",
    "Cov": "SqueezeBackward0",
    "Cross": "LinalgCrossBackward0",
    "Kron": "UnsafeViewBackward0",
    "Logdet": "WhereBackward0",
    "PairwiseDistance": "NormBackward1",
    "Prelu": "PreluKernelBackward0",
    "Rrelu": "RreluWithNoiseBackward0",
    "SmoothL1Loss": "SmoothL1LossBackward0",
    "SplitSizes": "SplitWithSizesBackward0",
    "Svd": "LinalgSvdBackward0",
    "Tile": "RepeatBackward0",
}


def _by_second(name: str, number: str, tensor: str) -> Callable[[str, int], str]:
    """Return the rule for a node's name: by whether the second argument is a number."""
    return lambda letters, ndim: f"{name}Backward{number if letters[1:2] == 'o' else tensor}"


def _by_first(name: str, number: str) -> Callable[[str, int], str]:
    """Return the rule for a node's name: `number` if the first argument is one."""
    return lambda letters, ndim: number if letters[:1] == "o" else f"{name}Backward0"


def _pow(letters: str, ndim: int) -> str:
    return f"PowBackward{2 if letters[:1] == 'o' else 0 if letters[1:2] == 'o' else 1}"


def _linear(letters: str, ndim: int) -> str:
    """The last step of ``F.linear``: a product of matrices, and a view for other inputs."""
    bias = letters[2:3] == "t"
    if ndim <= 2:
        return "AddmmBackward0" if bias else "MmBackward0"
    return "ViewBackward0" if bias else "UnsafeViewBackward0"


def _nll(letters: str, ndim: int) -> str:
    """The loss of a class for each row, or for each place of an image."""
    return "NllLossBackward0" if ndim <= 1 else "NllLoss2DBackward0"


_MODES = {
    "nearest": ("UpsampleNearest1D", "UpsampleNearest2D", "UpsampleNearest3D"),
    "nearest-exact": ("UpsampleNearestExact1D", "UpsampleNearestExact2D", "UpsampleNearestExact3D"),
    "linear": ("UpsampleLinear1D", "UpsampleBilinear2D", "UpsampleTrilinear3D"),
    "cubic": ("UpsampleBicubic2D",) * 3,
}


def _resampled(letters: str, ndim: int) -> str:
    mode = letters.rpartition(" ")[2]
    return f"{_MODES[mode][ndim - 3]}Backward0" if mode in _MODES else "ResampleBackward0"


def _joined(letters: str, ndim: int) -> str:
    """A layer and its activation in one pass: the activation is PyTorch's last step."""
    name = letters.rpartition(" ")[2]
    last = "Hardtanh" if name == "relu6" else "".join(map(str.capitalize, name.split("_")))
    return f"{last}Backward0"


# the name by the arguments: a letter for each (`o`: no tensor, `t`: one that requires grad, `-`:
# another tensor or none) and after spaces their texts, and the dimensions of the result
_RULES: dict[str, Callable[[str, int], str]] = {
    "Sub": _by_first("Sub", "RsubBackward1"),
    "Sum": _by_second("Sum", "1", "0"),
    "TrueDivide": _by_first("Div", "MulBackward0"),
    "Div": _by_first("Div", "MulBackward0"),
    "Mean": _by_second("Mean", "1", "0"),
    "Fill": _by_second("Fill", "2", "3"),
    "Fmod": _by_second("Fmod", "0", "1"),
    "Resample": _resampled,
    "Remainder": _by_second("Remainder", "0", "1"),
    "CrossEntropyForward": _nll,
    "Linear": _linear,
    "NativeBatchNormActivation": _joined,
    "NativeBatchNormAddActivation": _joined,
    "NllLoss": _nll,
    "Pow": _pow,
}
NAMES: dict[str, str | Callable[[str, int], str]] = {
    **{f"{name}Backward": result for name, result in _OPERATORS.items()},
    **{f"{name}Backward": rule for name, rule in _RULES.items()},
}
NAMES["CopySlices"] = "torch::autograd::CopySlices"
# operators of several steps here that are one step in PyTorch
STEPS = (
    *("adaptive_avg_pool2d", "addbmm", "addmv", "addr", "aminmax", "baddbmm", "batch_norm_by"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "cdist", "chunk", "complex"),
    *(
        "cov",
        "cross",
        "dist",
        "flip",
        "glu",
        "huber_loss",
        "index_copy",
        "index_fill",
        "index_fill_",
    ),
    *("index_reduce", "kron", "ldexp", "linalg_cross", "linalg_householder_product"),
    *("linalg_lu", "logdet", "mse_loss", "mvlgamma", "nansum", "nextafter", "ormqr"),
    *("pairwise_distance", "pdist", "polar", "prelu", "put", "renorm", "repeat", "roll"),
    *("rot90", "rrelu", "rsub", "smooth_l1_loss", "split", "split.sizes", "split_with_sizes"),
    *("stack", "svd", "take", "tile", "trace", "triangular_solve", "unbind", "unsafe_chunk"),
    *("unsafe_split", "unsafe_split_with_sizes", "vdot"),
)
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
    _autograd.show_node_names(NAMES, _saved_values.members)
    _autograd.name_steps(STEPS)
    node: Any = _autograd.Node
    node.variable = property(_variable)


def unbind() -> None:
    """Show plait's names again."""
    _autograd.show_node_names(None)
    _autograd.name_steps(())
    node: Any = _autograd.Node
    del node.variable
