"""Functions of `torch` that PyTorch's layers and losses call, with numbers for their options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import plait
import plait.nn.functional as F
from plait.nn.utils.rnn import PackedSequence
from plait.nn.utils.stateless import functional_call
from plait_torch._tensor_arguments import require_tensor

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


def _in_order(function: Callable[..., Any], order: str, **fixed: Any) -> Callable[..., Any]:
    """Return a function of `nn.functional` with the order of arguments that it has in `torch`.

    Args:
        function: it has its own defaults.
        order: the names of arguments; "train:training" is another name for "training", and
            "reduction" is a number: 0 (none), 1 (mean) or 2 (sum).
        fixed: arguments that each call gets.

    Example:
        >>> import plait
        >>> from plait_torch._layer_functions import margin_ranking_loss
        >>> one, two = plait.tensor([1.0]), plait.tensor([3.0])
        >>> margin_ranking_loss(one, two, plait.ones(1), 0.5, 2)
        tensor(2.5000)
    """
    own = dict(name.partition(":")[::2] for name in order.split())
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in own])

    def call(*args: Any, **options: Any) -> Any:
        bound_arguments = signature.bind_partial(*args, **options).arguments
        bound_arguments.pop("cudnn_enabled", None)
        if "reduction" in bound_arguments:
            bound_arguments["reduction"] = _reduction(bound_arguments["reduction"])
        return function(
            **{own[name] or name: value for name, value in bound_arguments.items()}, **fixed
        )

    call.__doc__ = f"`nn.functional.{function.__name__}` with the arguments {', '.join(own)}."
    return call


def _method(name: str) -> Callable[..., Any]:
    def call(input: Any, *args: Any, **options: Any) -> Any:
        return getattr(input, name)(*args, **options)

    call.__doc__ = f"`Tensor.{name}`."
    return call


# ---- losses


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


hinge_embedding_loss = _in_order(F.hinge_embedding_loss, "input target margin reduction")
margin_ranking_loss = _in_order(F.margin_ranking_loss, "input1 input2 target margin reduction")
cosine_embedding_loss = _in_order(F.cosine_embedding_loss, "input1 input2 target margin reduction")
triplet_margin_loss = _in_order(
    F.triplet_margin_loss, "anchor positive negative margin p eps swap reduction"
)
poisson_nll_loss = _in_order(F.poisson_nll_loss, "input target log_input full eps reduction")
ctc_loss = _in_order(
    F.ctc_loss, "log_probs targets input_lengths target_lengths blank reduction zero_infinity"
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
    result = F.embedding_bag(
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
    return result, bag_of.to(indices.dtype), ends - starts, indices.new_empty(0)


instance_norm = _in_order(
    F.instance_norm,
    "input weight bias running_mean running_var use_input_stats momentum eps cudnn_enabled",
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
    result = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    x = input if weight is None else input.to(weight.dtype)
    if not training:
        return result, x.new_empty(0), x.new_empty(0)
    dims = [dim for dim in range(x.ndim) if dim != 1]
    deviation = (x.var(dims, correction=0) + eps).rsqrt()
    return result, x.mean(dims), deviation


def adaptive_max_pool1d(input: Any, output_size: Any) -> tuple[Any, Any]:
    """Return maxima of parts of the last dimension, and their indices."""
    values, indices = F.adaptive_max_pool1d(input, output_size, return_indices=True)
    return values, indices


max_pool1d_with_indices = F.max_pool1d_with_indices
affine_grid_generator = F.affine_grid
conv_tbc = F.conv_tbc
native_channel_shuffle = F.channel_shuffle


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


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """Return the norms over all dimensions but one, which keep them; over all for -1.

    Example:
        >>> import plait
        >>> from plait_torch._layer_functions import norm_except_dim
        >>> norm_except_dim(plait.tensor([[3.0, 4.0], [0.0, 2.0]]))
        tensor([[5.],
                [2.]])
    """
    require_tensor("norm_except_dim", "v", v)
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


alpha_dropout_ = _in_order(F.alpha_dropout, "input p train:training", inplace=True)
feature_alpha_dropout_ = _in_order(F.feature_alpha_dropout, "input p train:training", inplace=True)

# ---- methods in place

as_strided_ = _method("as_strided_")
detach_ = _method("detach_")
resize_as_ = _method("resize_as_")


# ---- recurrent layers


def _cell(kind: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        module = kind(w_ih.shape[1], w_hh.shape[1], b_ih is not None, device="meta", **options)
        arguments = {"weight_ih": w_ih, "weight_hh": w_hh}
        if b_ih is not None:
            arguments |= {"bias_ih": b_ih, "bias_hh": b_hh}
        state = tuple(hx) if isinstance(hx, (list, tuple)) else hx
        return functional_call(module, arguments, (input, state))

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
        sizes, hx, *rest = args if packed else (None, *(args or (None,)))
        argument = dict(zip([*names, "batch_first"], rest, strict=False)) | options
        is_list = isinstance(argument.get("params"), (list, tuple))
        if len(rest) > 7 or not is_list or not argument.keys() >= set(names):
            raise TypeError(
                f"{kind.__name__.lower()}: `input`, `hx`, a list `params` of weights, and "
                f"{', '.join(names[1:])} are required; of a packed sequence its data and sizes"
            )
        params = list(argument["params"])
        rows = params[0].shape[0] // gates
        projected = kind is plait.nn.LSTM and params[1].shape[1] != rows
        module = kind(
            params[0].shape[1],
            rows,
            argument["num_layers"],
            bias=argument["has_biases"],
            batch_first=argument.get("batch_first", False),
            dropout=argument["dropout"],
            bidirectional=argument["bidirectional"],
            device="meta",
            **({"proj_size": params[1].shape[1]} if projected else {}),
            **own,
        ).train(argument["train"])
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
