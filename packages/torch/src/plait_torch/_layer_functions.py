"""Functions of `torch` that PyTorch's layers and losses call, with numbers for their options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plait
import plait.nn.functional as F
from plait.nn.utils.rnn import PackedSequence
from plait.nn.utils.stateless import functional_call

__all__ = [
    "adaptive_max_pool1d",
    "affine_grid_generator",
    "alpha_dropout_",
    "as_strided_",
    "conv_tbc",
    "convolution",
    "cosine_embedding_loss",
    "ctc_loss",
    "detach_",
    "embedding_bag",
    "feature_alpha_dropout_",
    "feature_dropout",
    "feature_dropout_",
    "gru",
    "gru_cell",
    "hinge_embedding_loss",
    "instance_norm",
    "kl_div",
    "lstm",
    "lstm_cell",
    "margin_ranking_loss",
    "max_pool1d_with_indices",
    "native_batch_norm",
    "native_channel_shuffle",
    "norm_except_dim",
    "poisson_nll_loss",
    "resize_as_",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
    "triplet_margin_loss",
]

_REDUCTIONS = ("none", "mean", "sum")
_MODES = ("sum", "mean", "max")


def _reduction(number: int | str) -> str:
    return number if isinstance(number, str) else _REDUCTIONS[number]


# ---- losses, whose reduction is 0 (none), 1 (mean) or 2 (sum)


def kl_div(input: Any, target: Any, reduction: int = 1, *, log_target: bool = False) -> Any:
    """`nn.functional.kl_div` with a number for the reduction.

    Example:
        >>> import plait
        >>> from plait_torch._layer_functions import kl_div
        >>> kl_div(plait.zeros(2), plait.ones(2), 0)
        tensor([0., 0.])
    """
    terms = F.kl_div(input, target, reduction="none", log_target=log_target)
    return terms if reduction in (0, "none") else getattr(terms, _reduction(reduction))()


def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: int = 1) -> Any:
    """`nn.functional.hinge_embedding_loss` with a number for the reduction."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))


def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 1
) -> Any:
    """`nn.functional.margin_ranking_loss` with a number for the reduction."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 1
) -> Any:
    """`nn.functional.cosine_embedding_loss` with a number for the reduction."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Any:
    """`nn.functional.triplet_margin_loss` with a number for the reduction."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_reduction(reduction)
    )


def poisson_nll_loss(
    input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int
) -> Any:
    """`nn.functional.poisson_nll_loss` with a number for the reduction."""
    return F.poisson_nll_loss(
        input, target, log_input=log_input, full=full, eps=eps, reduction=_reduction(reduction)
    )


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Any:
    """`nn.functional.ctc_loss` with a number for the reduction."""
    return F.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        _reduction(reduction),
        zero_infinity,
    )


# ---- layers


def embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Return the sums (0), means (1) or maxima (2) of bags of rows, the bag of each index, the size
    of each bag, and an empty tensor, in which PyTorch has the indices of maxima.

    Example:
        >>> import plait
        >>> from plait_torch._layer_functions import embedding_bag
        >>> rows, bags = plait.tensor([0, 1, 2]), plait.tensor([0, 2])
        >>> sums, bag_of, size, _ = embedding_bag(plait.eye(3), rows, bags)
        >>> sums.tolist(), bag_of.tolist(), size.tolist()
        ([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0, 0, 1], [2, 1])
    """
    made = F.embedding_bag(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=_MODES[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    starts = offsets[:-1] if include_last_offset else offsets
    ends = plait.cat([starts[1:], starts.new_full((1,), indices.numel())])
    places = plait.arange(indices.numel())
    bag_of = plait.searchsorted(starts.long(), places, right=True) - 1
    return made, bag_of.to(indices.dtype), ends - starts, indices.new_empty(0)


def instance_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Any:
    """`nn.functional.instance_norm` with PyTorch's order of arguments in `torch`."""
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def native_batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, Any, Any]:
    """Return batch normalisation, and in training the mean and the reciprocal deviation of each
    channel, which have the dtype of the weight, and are empty otherwise.

    Example:
        >>> import plait
        >>> from plait_torch._layer_functions import native_batch_norm
        >>> x = plait.tensor([[1.0], [3.0]])
        >>> native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1:]
        (tensor([2.]), tensor([1.]))
    """
    made = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    x = input if weight is None else input.to(weight.dtype)
    if not training:
        return made, x.new_empty(0), x.new_empty(0)
    dims = [dim for dim in range(x.ndim) if dim != 1]
    deviation = (x.var(dims, correction=0) + eps).rsqrt()
    return made, x.mean(dims), deviation


def adaptive_max_pool1d(input: Any, output_size: Any) -> tuple[Any, Any]:
    """Return maxima of parts of the last dimension, and their indices."""
    values, indices = F.adaptive_max_pool1d(input, output_size, return_indices=True)
    return values, indices


def max_pool1d_with_indices(input: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return maxima of windows of the last dimension, and their indices."""
    values, indices = F.max_pool1d_with_indices(input, *args, **options)
    return values, indices


def affine_grid_generator(theta: Any, size: Sequence[int], align_corners: bool) -> Any:
    """`nn.functional.affine_grid`."""
    return F.affine_grid(theta, list(size), align_corners)


def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """`nn.functional.conv_tbc`: the convolution of (time, batch, channels)."""
    return F.conv_tbc(input, weight, bias, pad)


def convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """Return a convolution over 1, 2 or 3 dimensions, or a transposed one.

    Example:
        >>> import plait
        >>> from plait_torch._layer_functions import convolution
        >>> x, w = plait.ones(1, 1, 3), plait.ones(1, 1, 2)
        >>> convolution(x, w, None, [1], [0], [1], False, [0], 1).tolist()
        [[[2.0, 2.0]]]
    """
    dims = weight.ndim - 2
    if transposed:
        function = getattr(F, f"conv_transpose{dims}d")
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(F, f"conv{dims}d")(input, weight, bias, stride, padding, dilation, groups)


def native_channel_shuffle(input: Any, groups: int) -> Any:
    """`nn.functional.channel_shuffle`."""
    return F.channel_shuffle(input, groups)


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """Return the norms over all dimensions but one, which keep them; over all for -1.

    Example:
        >>> import plait
        >>> from plait_torch._layer_functions import norm_except_dim
        >>> norm_except_dim(plait.tensor([[3.0, 4.0], [0.0, 2.0]]))
        tensor([[5.],
                [2.]])
    """
    if dim == -1:
        return plait.linalg.vector_norm(v, pow)
    others = [each for each in range(v.ndim) if each != dim % v.ndim]
    return plait.linalg.vector_norm(v, pow, others, keepdim=True) if others else v.abs()


# ---- dropout of whole channels, and in place


def feature_dropout(input: Any, p: float, train: bool) -> Any:
    """Zero whole channels with probability `p`, and scale the others."""
    if input.ndim < 2:
        raise RuntimeError("feature_dropout: at least 2 dimensions are required")
    mask = input.new_ones(input.shape[:2] + (1,) * (input.ndim - 2))
    return input * F.dropout(mask, p, train)


def feature_dropout_(input: Any, p: float, train: bool) -> Any:
    """`feature_dropout`, in place."""
    return input.copy_(feature_dropout(input, p, train))


def alpha_dropout_(input: Any, p: float, train: bool) -> Any:
    """`nn.functional.alpha_dropout`, in place."""
    return F.alpha_dropout(input, p, train, inplace=True)


def feature_alpha_dropout_(input: Any, p: float, train: bool) -> Any:
    """`nn.functional.feature_alpha_dropout`, in place."""
    return F.feature_alpha_dropout(input, p, train, inplace=True)


# ---- methods in place


def detach_(input: Any) -> Any:
    """`Tensor.detach_`."""
    return input.detach_()


def as_strided_(input: Any, *args: Any, **options: Any) -> Any:
    """`Tensor.as_strided_`."""
    return input.as_strided_(*args, **options)


def resize_as_(input: Any, the_template: Any, **options: Any) -> Any:
    """`Tensor.resize_as_`."""
    return input.resize_as_(the_template, **options)


# ---- recurrent layers


def _cell(kind: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        module = kind(w_ih.shape[1], w_hh.shape[1], b_ih is not None, device="meta", **options)
        given = {"weight_ih": w_ih, "weight_hh": w_hh}
        if b_ih is not None:
            given |= {"bias_ih": b_ih, "bias_hh": b_hh}
        state = tuple(hx) if isinstance(hx, (list, tuple)) else hx
        return functional_call(module, given, (input, state))

    return cell


lstm_cell = _cell(plait.nn.LSTMCell)
gru_cell = _cell(plait.nn.GRUCell)
rnn_tanh_cell = _cell(plait.nn.RNNCell)
rnn_relu_cell = _cell(plait.nn.RNNCell, nonlinearity="relu")


def _layer(kind: Callable[..., Any], gates: int, **own: Any) -> Callable[..., Any]:
    def layer(input: Any, *args: Any, **options: Any) -> tuple[Any, ...]:
        names = ["params", "has_biases", "num_layers", "dropout", "train", "bidirectional"]
        # PyTorch has a second form, with the sizes of a packed sequence's batches
        packed = len(args) > 2 and isinstance(args[2], (list, tuple))
        sizes, hx, *rest = args if packed else (None, *args)
        given = dict(zip([*names, "batch_first"], rest, strict=False)) | options
        params = list(given["params"])
        rows = params[0].shape[0] // gates
        projected = kind is plait.nn.LSTM and params[1].shape[1] != rows
        module = kind(
            params[0].shape[1],
            rows,
            given["num_layers"],
            bias=given["has_biases"],
            batch_first=given.get("batch_first", False),
            dropout=given["dropout"],
            bidirectional=given["bidirectional"],
            device="meta",
            **({"proj_size": params[1].shape[1]} if projected else {}),
            **own,
        ).train(given["train"])
        weights = dict(zip((name for name, _ in module.named_parameters()), params, strict=True))
        state = tuple(hx) if isinstance(hx, (list, tuple)) else hx
        whole = input if sizes is None else PackedSequence(input, sizes)
        output, last = functional_call(module, weights, (whole, state))
        output = output if sizes is None else output.data
        return (output, *last) if isinstance(last, tuple) else (output, last)

    return layer


lstm = _layer(plait.nn.LSTM, 4)
gru = _layer(plait.nn.GRU, 3)
rnn_tanh = _layer(plait.nn.RNN, 1)
rnn_relu = _layer(plait.nn.RNN, 1, nonlinearity="relu")
