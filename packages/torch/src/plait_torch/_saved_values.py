"""The attributes ``_saved_*`` of the nodes of gradients, as programs for PyTorch read them.

A node of PyTorch has an attribute for each value that its derivative reads: ``_saved_self``,
``_saved_other``, ``_saved_result``, ``_saved_dim``. `ATTRIBUTES` says which node has which. Their
values come from what plait's node keeps of its call: tensors that it saved, arguments that are
numbers, and shapes. A tensor that plait's derivative does not read is None, as one that is not
needed is in PyTorch. Tensors can be read until a pass frees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import plait
from plait_autograd import _autograd

__all__ = ["ATTRIBUTES", "members"]

# the attributes, and the nodes that have them without "Backward" before their last digit
_TABLE = """
alpha: Add0 Rsub0 Rsub1 Sub0
condition: Where0
diagonal: Tril0 Triu0
dim: Cat0 Cumsum0 Stack0 Unbind0 Unsqueeze0
dims: Flip0 Permute0
exponent: Frexp0
inverse: LinalgInvEx0
mask: MaskedFill0 MaskedFill1
other: Mul1
result: Exp20 Exp0 Expm10 Polar0 Reciprocal0 Relu0 Rsqrt0 Sigmoid0 SpecialNdtri0 Sqrt0 Tan0
    Tanh0
self: Abs0 Acos0 Acosh0 AdaptiveAvgPool2D0 Angle0 Asin0 Asinh0 Atan0 Atanh0 Cos0 Cosh0
    Digamma0 Erf0 Erfc0 Erfinv0 Hardsigmoid0 Hardswish0 I00 Lgamma0 LinalgMatrixExp0 Log100
    Log1P0 Log20 Log0 Mish0 NanToNum0 Silu0 Sin0 Sinc0 Sinh0 SpecialEntr0
self_sym_sizes: Expand0 Squeeze0 Sum0 Trace0 UnsafeView0 View0
weight: Lerp0
L upper: LinalgCholeskyEx0
LU_data_sym_argsize_minus_1 LU_data_sym_argsize_minus_2: LuUnpack0
accumulate indices: IndexPut0
alpha self: Celu0
approximate self: Gelu0
buffer self: LogSigmoid0
dim index: IndexFill0 IndexFill1 ScatterAdd0 Scatter0 Scatter1 SelectScatter0
dim normalization: FftC2R0
dim result: LogSoftmax0 Softmax0
dim self: Glu0
dim self_sym_sizes: Squeeze1
dim0 dim1: Transpose0
dims k: Rot900
dims shifts: Roll0
eigenvalues eigenvectors: LinalgEig0 LinalgEigh0
eps self: Logit0
exponent self: Pow0
imag real: Complex0
index self: Take0
indices self_sym_sizes: Index0
input weight: Linear0
lambd self: Hardshrink0 Softshrink0
mask self: MaskedSelect0
mask source_sym_sizes: MaskedScatter0
mat2 self: Bmm0
max self: ClampMax0
min self: ClampMin0
n self: Polygamma0
negative_slope self: LeakyRelu0
other result: Ldexp0
other self: Atan20 Div0 Fmax0 Fmin0 Fmod1 Igamma0 Igammac0 Logaddexp20 Logaddexp0 Matmul0
    Maximum0 Minimum0 Mul0 Nextafter0 Remainder1 SpecialXlog1Py0 SpecialZeta0 Vdot0 Xlogy0
p result1: NativeDropout0
p self: Mvlgamma0
repeats self_sym_sizes: Repeat0
result self: Copysign0 LinalgPinv0 Max1 Median0 Min1 Nanmedian0 Prod0 Sgn0 SpecialErfcx0
    SpecialI0E0 SpecialI10 SpecialI1E0 SpecialLogNdtr0 StandardGamma0
result upper: Cholesky0
self tensor: Dot0
self threshold: Threshold0
self vec: Mv0
self weight: PreluKernel0
self_sym_numel self_sym_sizes: Mean0
LU pivot pivots: LinalgLuFactorEx0
Q R mode: LinalgQr0
accumulate index source: Put0
b self solution: LinalgLstsq0
beta self threshold: Softplus0
dim forward normalization: FftC2C0
dim index self_sym_sizes: IndexSelect0 Select0
dim indices self: Cummax0 Cummin0
dim indices self_sym_sizes: Sort0 Topk0
dim keepdim self: Nansum0
dim keepdim self_sym_sizes: Sum1
dim other self: LinalgCross0
dim result self: Cumprod0 Logcumsumexp0
dim self_sym_sizes split_size: Split0 UnsafeSplit0
dim self_sym_sizes split_sizes: SplitWithSizes0 UnsafeSplitWithSizes0
dim1 dim2 offset: DiagEmbed0 DiagonalScatter0
exponent result self: Pow1 Pow2
input result tau: LinalgHouseholderProduct0
max min self: Clamp0 Clamp1
max_val min_val self: Hardtanh0
other result self: Hypot0
other rounding_mode self: Div2
output_size scales self_sym_sizes: UpsampleNearest1D0 UpsampleNearestExact1D0
p result self: Norm0 Pdist0
reduction self target: MseLoss0
result self upper: CholeskyInverse0
size storage_offset stride: AsStrided0 AsStridedScatter0
tensor1 tensor2 value: Addcdiv0 Addcmul0
A LU pivots result: LinalgDet0
A LU pivots sign: LinalgSlogdet0
L P U pivot: LinalgLu0
align_corners output_size scales self_sym_sizes: UpsampleLinear1D0
alpha batch1 batch2 beta: Baddbmm0
alpha beta mat vec: Addmv0
alpha beta vec1 vec2: Addr0
alpha input_scale scale self: Elu0
beta reduction self target: SmoothL1Loss0
correction dim keepdim self: Var0 VarMean0
delta reduction self target: HuberLoss0
dim end start step: SliceScatter0
dim index self sparse_grad: Gather0
dim index source source_dim: IndexCopy0
dim indices keepdim self_sym_sizes: Kthvalue0 Max0 Median1 Min0 Mode0 Nanmedian1
dim keepdim result self: Amax0 Amin0 Logsumexp0 Prod1
dim keepdim self_sym_numel self_sym_sizes: Mean1
dim maxnorm p self: Renorm0
dim normalization onesided self: FftR2C0
dim1 dim2 offset self_sym_sizes: Diagonal0
dimension self_sym_sizes size step: Unfold0
input2 result self upper: CholeskySolve0
other p result self: Dist0
output_size scales_h scales_w self_sym_sizes: UpsampleNearest2D0 UpsampleNearestExact2D0
p result x1 x2: Cdist0
reduction self target weight: BinaryCrossEntropy0
A LU left pivots result: LinalgSolveEx0
LU adjoint left pivots result: LinalgLuSolve0
S S_sym_argsize_minus_1 U Vh full_matrices: LinalgSvd0
align_corners output_size scales_h scales_w self_sym_sizes: UpsampleBicubic2DAa0
    UpsampleBicubic2D0 UpsampleBilinear2DAa0 UpsampleBilinear2D0 UpsampleLanczos2DAa0
alpha dim index source source_dim: IndexAdd0
correction dim keepdim result self: Std0
correction dim keepdim result0 self: StdMean0
dim end self_sym_sizes start step: Slice0
dim keepdim max min self: Aminmax0
dim keepdim ord result self: LinalgVectorNorm0
dim keepdim p result self: Norm1
indices padding_idx scale_grad_by_freq sparse weight_sym_argsize_0: Embedding0
left result self unitriangular upper: LinalgSolveTriangular0
lower noise self training upper: RreluWithNoise0
output_size scales_d scales_h scales_w self_sym_sizes: UpsampleNearest3D0
    UpsampleNearestExact3D0
pos_weight reduction self target weight: BinaryCrossEntropyWithLogits0
A self solution transpose unitriangular upper: TriangularSolve0
align_corners output_size scales_d scales_h scales_w self_sym_sizes: UpsampleTrilinear3D0
bias input normalized_shape result1 result2 weight: NativeLayerNorm0
ignore_index reduction self target total_weight weight: NllLoss2D0 NllLoss0
input2 input3 left result self transpose: Ormqr0
mat2 mat2_sym_sizes mat2_sym_strides self self_sym_sizes self_sym_strides: Mm0
alpha batch1 batch1_sym_argsize_0 batch1_sym_argsize_1 batch2 batch2_sym_argsize_2 beta:
    Addbmm0
ceil_mode count_include_pad divisor_override kernel_size padding self stride: AvgPool2D0
ceil_mode dilation kernel_size padding result1 self stride: MaxPool2DWithIndices0
dim include_self index reduce result self source: IndexReduce0
dim include_self index reduce result self src: ScatterReduce0
alpha beta mat1 mat1_sym_sizes mat1_sym_strides mat2 mat2_sym_sizes mat2_sym_strides: Addmm0
eps input result1 result2 running_mean running_var training weight: NativeBatchNorm0
attn_mask dropout_p is_causal key logsumexp output query scale value:
    ScaledDotProductFlashAttentionForCpu0
bias_sym_sizes_opt dilation groups input output_padding padding stride transposed weight:
    Convolution0
"""


def _rows() -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in _TABLE.replace("\n    ", " ").strip().splitlines():
        attributes, _, nodes = line.partition(": ")
        for node in nodes.split():
            yield f"{node[:-1]}Backward{node[-1]}", tuple(attributes.split())


ATTRIBUTES: dict[str, tuple[str, ...]] = dict(_rows())

# other names of arguments and results here, by PyTorch's
_ALIASES = {
    "self": ("input", "A", "grad", "x"),
    "input": ("self", "grad"),
    "weight": ("end",),
    "b": ("B",),
    "input2": ("L",),
    "eigenvectors": ("V",),
    "attn_mask": ("mask",),
    "dimension": ("dim",),
    "ord": ("p",),
    "source": ("src",),
    "index": ("indices",),
    "output": ("out",),
}
# integers that PyTorch shows without a sign
_UNSIGNED = frozenset(
    (
        *("dim", "dim0", "dim1", "dim2", "dims", "dimension", "diagonal", "end", "ignore_index"),
        *("index", "offset", "padding_idx", "shifts", "start"),
    )
)
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


class _Call:
    """What a node keeps of its call."""

    def __init__(self, node: Any) -> None:
        self.node = node
        name, arguments, saved = _autograd.node_call(node) or ("", (), [])
        self.name = name
        self.values = {each: value for each, value, _ in arguments}
        self.shapes = {each: shape for each, _, shape in arguments}
        self._arguments: dict[str, list[int]] = {}
        self._results: dict[int, int] = {}
        self._result_names: dict[str, int] = {}
        for i, (is_result, each, number, _) in enumerate(saved):
            if is_result:
                self._results[number] = i
                self._result_names[each or ""] = number
            else:
                self._arguments.setdefault(each or "", []).append(i)

    def tensor(self, argument: str) -> Any:
        """Return the saved tensor, or the tuple of a list of them; None: it was not saved."""
        places = self._arguments.get(argument, ())
        tensors = tuple(_autograd.saved_tensor(self.node, i) for i in places)
        shape = self.shapes[argument]
        if shape and not isinstance(shape[0], int):  # a list
            return tensors
        return tensors[0] if tensors else None

    def result(self, number: int) -> Any:
        """Return the saved result; None: it was not saved."""
        place = self._results.get(number)
        return None if place is None else _autograd.saved_tensor(self.node, place)

    def named_result(self, name: str) -> Any:
        """Return the saved result of that name."""
        return self.result(self._result_names[name]) if name in self._result_names else None

    def argument(self, attribute: str) -> str | None:
        """Return the argument that has this name in PyTorch."""
        for name in (attribute, *_ALIASES.get(attribute, ())):
            if name in self.values:
                return name
        return None


Source = Callable[[_Call], Any]


def _shape(call: _Call, attribute: str) -> tuple[int, ...] | None:
    """The shape of the tensor that PyTorch calls `attribute`."""
    name = call.argument(attribute)
    if name is None:
        return None
    shape = call.shapes[name]
    if shape is None:
        tensor = call.tensor(name)
        shape = tensor.shape if isinstance(tensor, plait.Tensor) else None
    return shape if shape is None else tuple(shape)


def _size(call: _Call, attribute: str) -> Any:
    """The value of an attribute like ``self_sym_sizes``."""
    of, _, what = attribute.partition("_sym_")
    if what == "strides":
        tensor = _value(call, of)
        return None if tensor is None else tensor.stride()
    if what == "sizes_opt":
        return _shape(call, of) or (0,)
    shape = _shape(call, of)
    if shape is None and (tensor := _value(call, of)) is not None:
        shape = tuple(tensor.shape)
    if shape is None or what == "sizes":
        return shape
    if what == "numel":
        return plait.Size(shape).numel()
    number = what.removeprefix("argsize_")
    return shape[-int(number[6:]) if number.startswith("minus_") else int(number)]


def _unsigned(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unsigned, value))
    return value + 2**64 if isinstance(value, int) and value < 0 else value


def _value(call: _Call, attribute: str) -> Any:
    """The value of an attribute by its name."""
    own = _SOURCES.get(call.name, {}).get(attribute)
    if own is not None:
        return own(call)
    if "_sym_" in attribute:
        return _size(call, attribute)
    name = call.argument(attribute)
    if name is None:
        if attribute.startswith("result"):
            return call.result(int(attribute[6:] or 0))
        return call.named_result(attribute)
    value = call.values[name]
    if value is None:
        value = call.tensor(name)
        return value[0] if attribute == "index" and isinstance(value, tuple) else value
    if attribute == "reduction":
        return _REDUCTIONS.get(value, value)
    return _unsigned(value) if attribute in _UNSIGNED else value


def _constant(value: Any) -> Source:
    return lambda call: value


def _argument(name: str) -> Source:
    return lambda call: call.values[name]


def _result(number: int) -> Source:
    return lambda call: call.result(number)


def _factor(call: _Call) -> Any:
    """The second operand of a product: a tensor of no dimensions if it is a number."""
    value = call.values["self"] if call.values["self"] is not None else call.values["other"]
    return call.tensor("other") if value is None else plait.tensor(value)


def _other_factor(call: _Call) -> Any:
    """The first operand, which is not needed if a number comes first."""
    return call.tensor("self")


def _transposed_weight(call: _Call) -> Any:
    weight = call.tensor("weight")
    return None if weight is None else weight.t()


def _rows_of_linear(call: _Call) -> tuple[int, ...] | None:
    """The shape of the product of matrices that ``F.linear`` of several rows is."""
    shape, weight = _shape(call, "input"), _shape(call, "weight")
    if not shape or not weight:
        return None
    return (plait.Size(shape[:-1]).numel(), weight[0])


def _correction(call: _Call) -> Any:
    """The correction of a deviation, which is not shown for all elements at its default."""
    both = call.values["dim"], call.values["correction"]
    return None if both == (None, 1) else both[1]


def _normalization(call: _Call) -> int:
    """What divides the sums of a Fourier transform: nothing, the root of the length, the length."""
    norm, forward = call.values["norm"], call.values.get("forward", call.name != "fft_c2r")
    return 1 if norm == "ortho" else 2 if (norm == "forward") == forward else 0


def _or_empty(name: str) -> Source:
    return lambda call: call.values[name] or ()


def _ends_of_slice(call: _Call) -> int:
    end = call.values["end"]
    return 2**63 - 1 if end is None else _unsigned(end)


def _dense_weight(call: _Call) -> Any:
    """The weights of ``F.prelu``, with as many dimensions as the input."""
    weight, shape = call.tensor("weight"), _shape(call, "self")
    return weight.reshape((1,) * len(shape)) if shape and weight.ndim == 0 else weight


def _as_real(index: int) -> dict[str, Source]:
    """A part of a complex tensor is in PyTorch an index into the pairs of its parts."""
    return {
        "dim": lambda call: len(_shape(call, "self") or ()),
        "index": _constant(index),
        "self_sym_sizes": lambda call: (*(_shape(call, "self") or ()), 2),
    }


def _without_history(number: int) -> Source:
    """A result that has no gradient in PyTorch."""

    def source(call: _Call) -> Any:
        result = call.result(number)
        return None if result is None else result.detach()

    return source


def _positive_dims(call: _Call) -> Any:
    """The dimensions of ``F.pairwise_distance``, counted from the first one."""
    dims, ndim = call.values["dim"], len(_shape(call, "self") or ())
    step = call.node.name() == "NormBackward1" and dims is not None
    return tuple(each % ndim for each in dims) if step else _unsigned(dims)


_DIVISION: dict[str, Source] = {"self": _other_factor, "other": _factor}
_MOMENTS: dict[str, Source] = {"result1": _without_history(1), "result2": _without_history(2)}
_DEVIATION: dict[str, Source] = {"correction": _correction, "result0": _result(0)}
_FOURIER: dict[str, Source] = {"normalization": _normalization}
_LOCATED: dict[str, Source] = {"indices": _result(1)}
# by the operator here: attributes whose values do not follow from their names
_SOURCES: dict[str, dict[str, Source]] = {
    "mul": _DIVISION,
    "true_divide": _DIVISION,
    "special_ndtr": {"other": _constant(0.5)},
    "square": {"exponent": _constant(2)},
    "relu6": {"min_val": _constant(0), "max_val": _constant(6)},
    "elu": {"scale": _constant(1), "input_scale": _constant(1)},
    "selu": {
        "alpha": _constant(1.6732632423543772),
        "scale": _constant(1.0507009873554805),
        "input_scale": _constant(1),
    },
    "gelu_erf": {"approximate": _constant("none")},
    "gelu_tanh": {"approximate": _constant("tanh")},
    "prelu_elements": {"weight": _dense_weight},
    "var": _DEVIATION,
    "std": _DEVIATION,
    "var_mean": _DEVIATION,
    "std_mean": _DEVIATION,
    "fft_c2c": _FOURIER,
    "fft_c2r": _FOURIER,
    "fft_r2c": _FOURIER,
    "slice": {"start": lambda call: _unsigned(call.values["start"] or 0), "end": _ends_of_slice},
    "slice_scatter": {
        "start": lambda call: _unsigned(call.values["start"] or 0),
        "end": _ends_of_slice,
    },
    "narrow": {
        "end": lambda call: call.values["start"] + call.values["length"],
        "step": _constant(1),
    },
    "squeeze.dim": {"dim": lambda call: _unsigned(call.values["dim"][0])},
    "avg_pool2d": {"stride": _or_empty("stride"), "divisor_override": _constant(None)},
    "native_max_pool2d": {"stride": _or_empty("stride"), "result1": _result(1)},
    "conv2d": {"transposed": _constant(False), "output_padding": _constant((0, 0))},
    "conv2d_backward_input": {
        "transposed": _constant(True),
        "output_padding": _constant((0, 0)),
        "bias_sym_sizes_opt": _constant((0,)),
    },
    "linear": {
        "alpha": _constant(1),
        "beta": _constant(1),
        "mat1": lambda call: call.tensor("input"),
        "mat1_sym_sizes": lambda call: _shape(call, "input"),
        "self": lambda call: call.tensor("input"),
        "self_sym_sizes": lambda call: (
            _shape(call, "input")
            if len(_shape(call, "input") or ()) == 2
            else _rows_of_linear(call)
        ),
        "mat2": _transposed_weight,
    },
    "embedding": {
        "sparse": _constant(False),
        "scale_grad_by_freq": _constant(False),
        "weight_sym_argsize_0": lambda call: (_shape(call, "weight") or (None,))[0],
    },
    "attention_forward": {
        "output": _result(0),
        "logsumexp": _without_history(1),
        "dropout_p": _constant(0.0),
        "scale": _constant(None),
    },
    "native_batch_norm": {"training": _constant(True), **_MOMENTS},
    "native_layer_norm": _MOMENTS,
    "real": _as_real(0),
    "imag": _as_real(1),
    "tanhshrink": {"alpha": _constant(1)},
    "cross_entropy_forward": {"total_weight": _result(2)},
    "linalg_inv": {"inverse": _result(0)},
    "linalg_cholesky": {"L": _result(0)},
    "euclidean_distances": {"p": _constant(2.0)},
    "div_trunc": {"rounding_mode": _constant("trunc")},
    "lstsq_parts": {"solution": _result(0), "self": lambda call: call.tensor("A")},
    "gather": {"sparse_grad": _constant(False)},
    "topk": _LOCATED,
    "sort": _LOCATED,
    "norm": {"dim": _positive_dims},
    "dot": {"other": lambda call: call.tensor("tensor")},
}
_SOURCES["singular_values"] = {
    "full_matrices": _constant(False),
    "S_sym_argsize_minus_1": lambda call: min((_shape(call, "A") or (0,))[-2:]),
    "U": _result(1),
    "Vh": _result(2),
}
_SOURCES["symmetric_eigenvalues"] = {"eigenvalues": _result(0), "eigenvectors": _result(1)}


def members(name: str) -> dict[str, Any]:
    """Return the attributes of the type of nodes with this name."""

    def reader(attribute: str) -> Callable[[Any], Any]:
        return lambda node: _value(_Call(node), attribute)

    return {
        f"_saved_{each}": property(reader(each), doc=f"`{each}` of the call, as far as it is kept.")
        for each in ATTRIBUTES.get(name, ())
    }
