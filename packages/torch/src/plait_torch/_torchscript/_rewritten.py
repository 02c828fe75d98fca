"""Operators of PyTorch that plait writes otherwise: other names, other orders of arguments, and
results of another form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import plait
import plait.nn.functional as F
from plait.nn.utils import rnn
from plait_abi import binding
from plait_torch import _aten, _autocast, _functions
from plait_torch._torchscript import _numbers
from plait_torch._torchscript._codes import dtype_of, with_options
from plait_torch._torchscript._numbers import as_number

_INTERPOLATIONS = {
    "nearest": "nearest", "nearest_exact": "nearest-exact", "linear": "linear",
    "bilinear": "bilinear", "bicubic": "bicubic", "trilinear": "trilinear",
}  # fmt: skip
_REDUCTIONS = ("none", "mean", "sum")


def _to(x: Any, *args: Any, **kwargs: Any) -> Any:
    """``to``: a dtype is a number, after the device if there is one; then the flags."""
    rest, options = list(args), dict(kwargs)
    leading: list[Any] = []
    while rest and type(rest[0]) is not bool and len(leading) < 2:
        leading.append(rest.pop(0))
    if leading and isinstance(leading[0], plait.Tensor):
        options.update(device=leading[0].device, dtype=leading[0].dtype)
    elif len(leading) == 2 or (leading and isinstance(leading[0], (str, plait.device))):
        options["device"] = leading[0]
        if len(leading) == 2:
            options["dtype"] = dtype_of(leading[1])
    elif leading:
        options["dtype"] = dtype_of(leading[0])
    options.setdefault("non_blocking", rest[0] if rest else False)
    options["copy"] = rest[1] if len(rest) > 1 else options.get("copy", False)
    if len(rest) > 2:
        options.update(with_options({"memory_format": rest[2]}))
    chosen = {
        name: value for name, value in options.items()
        if value is not None and value is not False and name != "layout"
    }  # fmt: skip
    return x.to(**chosen) if chosen else x


def _softmax(name: str) -> Callable[..., Any]:
    def call(x: Any, dim: int, dtype: Any = None) -> Any:
        return getattr(plait.Tensor, name)(x, dim, dtype=dtype_of(dtype))

    return call


def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: Any,
    output_padding: Any, groups: int, *flags: Any,
) -> Any:  # fmt: skip
    """``_convolution``, whose last arguments choose libraries."""
    args = (stride, padding, dilation, transposed, output_padding, groups)
    return _aten.packet("convolution")(x, weight, bias, *args)


def _convolution_mode(
    x: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
) -> Any:
    conv = _aten.convolution_of(x, weight)
    return conv(x, weight, bias, stride, padding, dilation, groups)


def _transposed(dims: int) -> Callable[..., Any]:
    def call(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        function = getattr(F, f"conv_transpose{dims}d")
        return function(x, weight, bias, stride, padding, output_padding, groups, dilation)

    return call


def _batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float,
    eps: float, cudnn: bool = True,
) -> Any:  # fmt: skip
    return F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)


def _group_norm(
    x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn: bool = True
) -> Any:
    return F.group_norm(x, groups, weight, bias, eps)


def _layer_norm(
    x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn: bool = True,
) -> Any:  # fmt: skip
    return F.layer_norm(x, tuple(shape), weight, bias, eps)


def _embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale: bool = False, sparse: bool = False
) -> Any:
    padding = None if padding_idx < 0 else padding_idx
    return F.embedding(
        indices, weight, padding_idx=padding, scale_grad_by_freq=scale, sparse=sparse
    )


def _indexed(x: Any, indices: Any) -> Any:
    return x[tuple(slice(None) if each is None else each for each in indices)]


def _index_put(in_place: bool) -> Callable[..., Any]:
    def call(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
        function = _functions.index_put_ if in_place else _functions.index_put
        return function(x, indices, values, accumulate)

    return call


def _upsampled(mode: str, corners: bool, **more: Any) -> Callable[..., Any]:
    """``upsample_*``: sizes, whether corners are aligned, and factors, as one or as several."""

    def call(x: Any, size: Any = None, *args: Any, **kwargs: Any) -> Any:
        rest = list(args)
        align = bool(rest.pop(0)) if corners and rest else kwargs.get("align_corners", False)
        scales = kwargs.get("scale_factors", kwargs.get("scales"))
        if rest:
            scales = rest[0] if isinstance(rest[0], (list, tuple)) else rest
        options: dict[str, Any] = {"mode": mode, **more}
        if corners:
            options["align_corners"] = bool(align)
        if size is not None:
            return F.interpolate(x, size=list(size), **options)
        return F.interpolate(x, scale_factor=list(scales or ()), **options)

    return call


def _padded(mode: str) -> Callable[..., Any]:
    return lambda x, padding: F.pad(x, list(padding), mode=mode)


def _loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loss whose reduction is a number at some place after the target."""

    def call(x: Any, target: Any, reduction: int = 1, *args: Any) -> Any:
        return function(x, target, *args, reduction=_REDUCTIONS[reduction])

    return call


def _nll_loss(
    x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100
) -> Any:
    return F.nll_loss(x, target, weight, ignore_index=ignore_index,
                      reduction=_REDUCTIONS[reduction])  # fmt: skip


def _cross_entropy(
    x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    return F.cross_entropy(
        x, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction],
        label_smoothing=label_smoothing,
    )  # fmt: skip


def _binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    return F.binary_cross_entropy(x, target, weight, reduction=_REDUCTIONS[reduction])


def _with_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    return F.binary_cross_entropy_with_logits(
        x, target, weight, pos_weight=pos_weight, reduction=_REDUCTIONS[reduction]
    )


def _self_attention(
    q: Any, k: Any, v: Any, size: int, heads: int, weights: Any, biases: Any, out_weight: Any,
    out_bias: Any, mask: Any = None, need_weights: bool = True, averaged: bool = True,
    mask_type: Any = None,
) -> Any:  # fmt: skip
    """``_native_multi_head_attention``, which inference of `MultiheadAttention` calls: the batch
    comes first, and a mask of type 1 is for padding.
    """
    result, attention = F.multi_head_attention_forward(
        q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), size, heads, weights, biases,
        None, None, False, 0.0, out_weight, out_bias, training=False,
        key_padding_mask=mask if mask_type == 1 else None, need_weights=need_weights,
        attn_mask=None if mask_type == 1 else mask, average_attn_weights=averaged,
    )  # fmt: skip
    return result.transpose(0, 1), q.new_empty(0) if attention is None else attention


def _encoder_layer(
    x: Any, size: int, heads: int, weights: Any, biases: Any, out_weight: Any, out_bias: Any,
    gelu: bool, norm_first: bool, eps: float, scale1: Any, shift1: Any, scale2: Any, shift2: Any,
    weight1: Any, bias1: Any, weight2: Any, bias2: Any, mask: Any = None, mask_type: Any = None,
) -> Any:  # fmt: skip
    """``_transformer_encoder_layer_fwd``, which inference of `TransformerEncoderLayer` calls."""

    def attended(y: Any) -> Any:
        return _self_attention(
            y, y, y, size, heads, weights, biases, out_weight, out_bias, mask, False,
            mask_type=mask_type,
        )[0]  # fmt: skip

    def fed(y: Any) -> Any:
        y = F.linear(y, weight1, bias1)
        return F.linear(F.gelu(y) if gelu else F.relu(y), weight2, bias2)

    if norm_first:
        x = x + attended(F.layer_norm(x, (size,), scale1, shift1, eps))
        return x + fed(F.layer_norm(x, (size,), scale2, shift2, eps))
    x = F.layer_norm(x + attended(x), (size,), scale1, shift1, eps)
    return F.layer_norm(x + fed(x), (size,), scale2, shift2, eps)


def _packed(x: Any, lengths: Any, batch_first: bool) -> Any:
    packed = rnn.pack_padded_sequence(x, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _unpacked(data: Any, sizes: Any, batch_first: bool, padding: float, total: int = 0) -> Any:
    packed = rnn.PackedSequence(data, sizes)
    length = int(total) or None
    return rnn.pad_packed_sequence(packed, batch_first, padding, length)


def _size(x: Any, dim: Any = None) -> Any:
    return list(x.shape) if dim is None else x.shape[dim]


def _stride(x: Any, dim: Any = None) -> Any:
    return list(x.stride()) if dim is None else x.stride(dim)


def _listed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose several results are a list, as code expects to change it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return list(result) if isinstance(result, tuple) else result

    return call


def _tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    result = plait.tensor(data, dtype=dtype, device=device)
    return result.requires_grad_() if requires_grad else result


def _no_grad_in_place(name: str) -> Callable[..., Any]:
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        with plait.no_grad():
            return getattr(x, name)(*args, **kwargs)

    return call


def _item_or_row(x: Any, key: Any) -> Any:
    return x[key.item() if isinstance(key, plait.Tensor) and key.ndim == 0 else key]


def _norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return plait.norm(x, 2 if p is None else p, dim, keepdim, dtype=dtype)


def _set_grad(mode: bool) -> None:
    plait.set_grad_enabled(mode)


def _set_item(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def _max_with_indices(dims: int) -> Callable[..., Any]:
    return lambda x, *args: getattr(F, f"max_pool{dims}d")(x, *args, return_indices=True)


def _indexed_pool(dims: int) -> Callable[..., Any]:
    return lambda x, size: getattr(F, f"adaptive_max_pool{dims}d")(x, size, return_indices=True)


def _unpooled(dims: int) -> Callable[..., Any]:
    """``max_unpool``, which is given the size of its result."""

    def call(x: Any, indices: Any, size: Any, *args: Any) -> Any:
        lead = tuple(x.shape[:-dims])
        result = x.new_zeros((*lead, math.prod(size)))
        result = result.scatter(-1, indices.flatten(-dims), x.flatten(-dims))
        return result.reshape((*lead, *size))

    return call


def _batches(x: Any, sizes: Any, dim: int = 0) -> Any:
    return list(x.split(sizes, dim))


def _roll(x: Any, shifts: Any, dims: Any = ()) -> Any:
    return plait.roll(x, shifts, dims) if dims else plait.roll(x, shifts)


def _tensordot(a: Any, b: Any, dims_a: Any, dims_b: Any) -> Any:
    return plait.tensordot(a, b, (list(dims_a), list(dims_b)))


def _three(function: Callable[..., Any], sorts: bool) -> Callable[..., Any]:
    """`unique` and its kin: always values, places and counts; those not asked for are empty."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        names = [*(["sorted"] if sorts else []), "return_inverse", "return_counts", "dim"]
        options = {**dict(zip(names, args, strict=False)), **kwargs}
        inverse, counts = options.pop("return_inverse", False), options.pop("return_counts", False)
        results = function(x, return_inverse=True, return_counts=True, **options)
        empty = plait.empty(0, dtype=plait.int64)
        return results[0], results[1] if inverse else empty, results[2] if counts else empty

    return call


def _unique_dim(function: Callable[..., Any], sorts: bool) -> Callable[..., Any]:
    def call(x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
        return _three(function, sorts)(x, *args, dim=dim, **kwargs)

    return call


_DISTANCES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)  # fmt: skip


def _cdist(a: Any, b: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    mode = _DISTANCES[compute_mode or 0]
    return plait.cdist(a, b, p, compute_mode=mode)


def _stft(x: Any, n_fft: int, hop: Any = None, win: Any = None, window: Any = None,
          *args: Any) -> Any:  # fmt: skip
    """``stft``: of a signal that is padded already, or with the centre and the mode of padding."""
    centred = len(args) > 1 and isinstance(args[1], str)
    center, mode, *rest = args if centred else (False, "reflect", *args)
    names = ("normalized", "onesided", "return_complex")
    options = dict(zip(names, rest, strict=False))
    return plait.stft(x, n_fft, hop, win, window, center, mode, **options)


def _embedding_renorm(weight: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    with plait.no_grad():
        rows = indices.unique()
        norms = weight[rows].norm(norm_type, 1, keepdim=True)
        scale = plait.where(norms > max_norm, max_norm / (norms + 1e-7), plait.ones_like(norms))
        weight[rows] = weight[rows] * scale
    return weight


def _multi_margin(x: Any, target: Any, p: Any = 1, margin: Any = 1, weight: Any = None,
                  reduction: int = 1) -> Any:  # fmt: skip
    return F.multi_margin_loss(x, target, p, margin, weight, reduction=_REDUCTIONS[reduction])


def _einsum(equation: str, tensors: Any, path: Any = None) -> Any:
    return plait.einsum(equation, *tensors)


def _meshgrid(tensors: Any, indexing: str = "ij") -> Any:
    return list(plait.meshgrid(*tensors, indexing=indexing))


def _functional(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: getattr(F, name)(*args, **kwargs)


def _library(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: getattr(plait, name)(*args, **kwargs)


def _tensor_method(name: str) -> Callable[..., Any]:
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def _cast(name: str) -> Callable[..., Any]:
    return lambda x, non_blocking=False: x.to(getattr(plait, name))


_CASTS = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64",
    "Half": "float16", "Float": "float32", "Double": "float64",
}  # fmt: skip
_POOLS = ("adaptive_avg_pool", "avg_pool", "max_pool")
_POSITIONAL_LOSSES = ("mse_loss", "l1_loss", "soft_margin_loss", "multilabel_margin_loss")

_NAMED: dict[str, Callable[..., Any]] = {
    # sizes, types and places
    "to": _to,
    "size": _size,
    "stride": _stride,
    "dim": lambda x: x.ndim,
    "numel": lambda x: x.numel(),
    "len": len,
    "item": as_number,
    "Int": lambda x: int(x.item()) if isinstance(x, plait.Tensor) else int(x),
    "Float": lambda x: float(x.item()) if isinstance(x, plait.Tensor) else float(x),
    "Bool": lambda x: bool(x.item()) if isinstance(x, plait.Tensor) else bool(x),
    "IntImplicit": as_number,
    "FloatImplicit": as_number,
    "ComplexImplicit": as_number,
    "ScalarImplicit": as_number,
    "_local_scalar_dense": as_number,
    "__is__": lambda a, b: a is b,
    "__isnot__": lambda a, b: a is not b,
    "__not__": lambda a: not a,
    "__getitem__": _item_or_row,
    "__contains__": lambda owner, key: key in owner,
    "_set_item": _set_item,
    "append": lambda owner, value: owner.append(value) or owner,
    "extend": lambda owner, values: owner.extend(values),
    "insert": lambda owner, place, value: owner.insert(place, value),
    "format": _numbers.TABLE["format"],
    "list": list,
    "device": lambda name, index=None: plait.device(name if index is None else f"{name}:{index}"),
    "is_autocast_enabled": lambda *device: _autocast.is_autocast_enabled(*device),
    "is_autocast_cpu_enabled": lambda: _autocast.is_autocast_enabled("cpu"),
    "get_autocast_dtype": lambda device: _autocast.get_autocast_dtype(device),
    "is_grad_enabled": plait.is_grad_enabled,
    "set_grad_enabled": _set_grad,
    "_shape_as_tensor": lambda x: plait.tensor(list(x.shape)),
    "alias": lambda x: x.view_as(x),
    "lift": lambda x: x,
    "lift_fresh": lambda x: x,
    "numpy_T": lambda x: x.T,
    **{
        name: _tensor_method(name)
        for name in (
            "is_floating_point", "is_complex", "is_contiguous", "requires_grad_", "detach",
            "type_as", "get_device", "storage_offset", "element_size", "is_nonzero",
            "is_signed", "equal", "allclose", "resize_", "resize_as_", "to_dense", "less",
            "less_equal", "greater",
            "greater_equal", "not_equal", "istft", "is_same_size", "contiguous", "cpu",
        )
    },
    # creation
    "tensor": _tensor,
    "as_tensor": _library("as_tensor"),
    "arange": _library("arange"),
    "scalar_tensor": lambda value, **kwargs: plait.tensor(value, **kwargs),
    "einsum": _einsum,
    "meshgrid": _meshgrid,
    **{
        name: _library(name)
        for name in ("block_diag", "result_type", "promote_types", "can_cast", "broadcast_tensors")
    },
    # parts
    "slice": lambda x, dim=0, start=None, end=None, step=1: binding.operator("slice")(
        x, dim, start, end, step
    ),
    "index": _indexed,
    "index_put": _index_put(False),
    "index_put_": _index_put(True),
    "_index_put_impl_": lambda x, indices, values, accumulate=False, unsafe=False: _index_put(True)(
        x, indices, values, accumulate
    ),
    "split": _batches,
    "split_with_sizes": _batches,
    "chunk": _listed(plait.Tensor.chunk),
    "unbind": _listed(plait.Tensor.unbind),
    "tensor_split": _listed(plait.Tensor.tensor_split),
    "_unique2": _three(plait.unique, True),
    "_unique": lambda x, *args: _three(plait.unique, True)(x, *args)[:2],
    "unique_consecutive": _three(plait.unique_consecutive, False),
    "unique_dim": _unique_dim(plait.unique, True),
    "unique_dim_consecutive": _unique_dim(plait.unique_consecutive, False),
    "roll": _roll,
    "resolve_conj": lambda x: x,
    "resolve_neg": lambda x: x,
    "mT": lambda x: x.mT,
    "mH": lambda x: x.mH,
    "matrix_H": lambda x: x.mH,
    "to_sparse": lambda x, dims=None: x.to_sparse() if dims is None else x.to_sparse(dims),
    "constant_pad_nd": lambda x, padding, value=0: F.pad(x, list(padding), value=value),
    "pad": lambda x, padding, mode="constant", value=None: F.pad(x, list(padding), mode, value),
    # arithmetic
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "_softmax": lambda x, dim, half=False: x.softmax(dim),
    "_log_softmax": lambda x, dim, half=False: x.log_softmax(dim),
    "norm": _norm,
    "tensordot": _tensordot,
    "cdist": _cdist,
    "stft": _stft,
    "gradient": lambda x, *args, **kwargs: list(plait.gradient(x, *args, **kwargs)),
    "frobenius_norm": lambda x, dim=None, keepdim=False: plait.norm(x, "fro", dim, keepdim),
    "linalg_multi_dot": lambda tensors: plait.linalg.multi_dot(tensors),
    "rsub": lambda x, other, alpha=1: other - x * alpha,
    "floordiv": lambda a, b: plait.floor_divide(a, b),
    "__and__": lambda a, b: a & b,
    "__or__": lambda a, b: a | b,
    "__xor__": lambda a, b: a ^ b,
    "__lshift__": lambda a, b: a << b,
    "__rshift__": lambda a, b: a >> b,
    "__iand__": lambda a, b: a.bitwise_and_(b),
    "__ior__": lambda a, b: a.bitwise_or_(b),
    # layers
    "_convolution": _convolution,
    "_convolution_mode": _convolution_mode,
    "conv_transpose2d": _transposed(2),
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "layer_norm": _layer_norm,
    "rms_norm": lambda x, shape, weight=None, eps=None: F.rms_norm(x, tuple(shape), weight, eps),
    "embedding": _embedding,
    "dropout": lambda x, p, train: F.dropout(x, p, train),
    "dropout_": lambda x, p, train: F.dropout(x, p, train, inplace=True),
    "alpha_dropout": lambda x, p, train: F.alpha_dropout(x, p, train),
    "feature_alpha_dropout": lambda x, p, train: F.feature_alpha_dropout(x, p, train),
    "embedding_renorm_": _embedding_renorm,
    "_native_multi_head_attention": _self_attention,
    "_transformer_encoder_layer_fwd": _encoder_layer,
    "_pack_padded_sequence": _packed,
    "_pad_packed_sequence": _unpacked,
    "one_hot": lambda x, classes=-1: F.one_hot(x, classes),
    "prelu": lambda x, weight: F.prelu(x, weight),
    "pixel_shuffle": _functional("pixel_shuffle"),
    "pixel_unshuffle": _functional("pixel_unshuffle"),
    "channel_shuffle": _functional("channel_shuffle"),
    "im2col": lambda x, size, dilation, padding, stride: F.unfold(
        x, size, dilation, padding, stride
    ),
    "col2im": lambda x, output, size, dilation, padding, stride: F.fold(
        x, output, size, dilation, padding, stride
    ),
    "gelu": lambda x, approximate="none": F.gelu(x, approximate=approximate),
    "log_sigmoid": lambda x: F.logsigmoid(x),
    "scaled_dot_product_attention": lambda q, k, v, mask=None, p=0.0, causal=False, **kwargs: (
        F.scaled_dot_product_attention(q, k, v, mask, p, causal, **kwargs)
    ),
    # losses
    "nll_loss": _nll_loss,
    "nll_loss_nd": _nll_loss,
    "nll_loss2d": _nll_loss,
    "cross_entropy_loss": _cross_entropy,
    "multi_margin_loss": _multi_margin,
    "binary_cross_entropy": _binary_cross_entropy,
    "binary_cross_entropy_with_logits": _with_logits,
    **{name: _loss(getattr(F, name)) for name in _POSITIONAL_LOSSES},
    "smooth_l1_loss": lambda x, target, reduction=1, beta=1.0: F.smooth_l1_loss(
        x, target, reduction=_REDUCTIONS[reduction], beta=beta
    ),
    "huber_loss": lambda x, target, reduction=1, delta=1.0: F.huber_loss(
        x, target, reduction=_REDUCTIONS[reduction], delta=delta
    ),
}  # fmt: skip
# one for each number of dimensions, dtype or mode
_COUNTED: dict[str, Callable[..., Any]] = {
    **{f"_cast_{name}": _cast(kind) for name, kind in _CASTS.items()},
    **{f"reflection_pad{n}d": _padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _padded("replicate") for n in (1, 2, 3)},
    **{
        f"_no_grad_{name}": _no_grad_in_place(name)
        for name in ("uniform_", "normal_", "fill_", "zero_")
    },
    **{f"conv{n}d": _functional(f"conv{n}d") for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _transposed(n) for n in (1, 2, 3)},
    **{f"{kind}{n}d": _functional(f"{kind}{n}d") for kind in _POOLS for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": _indexed_pool(n) for n in (1, 2, 3)},
    **{f"max_unpool{n}d": _unpooled(n) for n in (2, 3)},
    **{f"max_pool{n}d_with_indices": _max_with_indices(n) for n in (1, 2, 3)},
    **{
        f"upsample_{name}{n}d": _upsampled(mode, name in ("linear", "bilinear", "bicubic",
                                                          "trilinear"))
        for name, mode, dims in (
            ("nearest", "nearest", (1, 2, 3)), ("linear", "linear", (1,)),
            ("bilinear", "bilinear", (2,)), ("bicubic", "bicubic", (2,)),
            ("trilinear", "trilinear", (3,)), ("_nearest_exact", "nearest-exact", (1, 2, 3)),
        )
        for n in dims
    },
    **{
        f"_upsample_{mode}2d_aa": _upsampled(mode, True, antialias=True)
        for mode in ("bilinear", "bicubic", "lanczos")
    },
    **{f"_upsample_nearest_exact{n}d": _upsampled("nearest-exact", False) for n in (1, 2, 3)},
}  # fmt: skip
TABLE = _NAMED | _COUNTED
