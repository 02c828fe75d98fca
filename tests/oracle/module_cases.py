"""The cases of test_modules: a module, its arguments and its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

import plait_core as pc


class Draw:
    """Reproducible arrays."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def normal(self, *shape: int) -> np.ndarray[Any, Any]:
        return np.asarray(self.generator.standard_normal(shape))

    def positive(self, *shape: int) -> np.ndarray[Any, Any]:
        return np.asarray(self.generator.uniform(0.1, 0.9, shape))

    def signs(self, *shape: int) -> np.ndarray[Any, Any]:
        """Targets of 1 and -1 that get no gradient."""
        return np.asarray(self.generator.integers(0, 2, shape) * 2 - 1)

    def below(self, high: int, *shape: int) -> np.ndarray[Any, Any]:
        return np.asarray(self.generator.integers(0, high, shape))


def _ours(value: Any) -> Any:
    return pc.tensor(value.numpy()) if isinstance(value, torch.Tensor) else value


class Case(NamedTuple):
    """A module, its arguments, and what makes its inputs."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: Callable[[Draw], tuple[Any, ...]]
    calls: int
    same_text: bool

    @property
    def ours_args(self) -> tuple[Any, ...]:
        return tuple(map(_ours, self.args))

    @property
    def ours_kwargs(self) -> dict[str, Any]:
        return {name: _ours(value) for name, value in self.kwargs.items()}

    @property
    def id(self) -> str:
        arguments = [*map(str, self.args), *(f"{k}={v}" for k, v in self.kwargs.items())]
        return f"{self.name}({', '.join(arguments)})".replace("\n", "")


CASES: list[Case] = []


def add(
    name: str,
    *args: Any,
    inputs: Callable[[Draw], tuple[Any, ...]] | None = None,
    shape: tuple[int, ...] = (),
    calls: int = 1,
    same_text: bool = True,
    **kwargs: Any,
) -> None:
    """Add a case; without ``inputs`` the input is one normal array of ``shape``."""
    result = inputs if inputs is not None else lambda draw: (draw.normal(*shape),)
    CASES.append(Case(name, args, kwargs, result, calls, same_text))


# normalisation
for dims, size in ((1, (4, 3, 5)), (2, (4, 3, 5, 2)), (3, (2, 3, 2, 5, 2))):
    add(f"BatchNorm{dims}d", 3, shape=size, calls=2)
    add(f"BatchNorm{dims}d", 3, momentum=None, affine=False, shape=size, calls=3)
    add(f"BatchNorm{dims}d", 3, track_running_stats=False, eps=1e-3, shape=size)
    add(f"InstanceNorm{dims}d", 3, shape=size)
    add(f"InstanceNorm{dims}d", 3, affine=True, track_running_stats=True, shape=size, calls=2)
    add(f"InstanceNorm{dims}d", 3, shape=size[1:])
add("BatchNorm1d", 3, shape=(4, 3))
add("BatchNorm2d", 3, bias=False, shape=(2, 3, 4, 4))
add("GroupNorm", 2, 6, shape=(3, 6, 4, 2))
add("GroupNorm", 3, 6, affine=False, shape=(3, 6))
add("RMSNorm", 5, shape=(2, 3, 5))
add("RMSNorm", (3, 5), eps=0.1, shape=(2, 3, 5))
add("RMSNorm", (5,), elementwise_affine=False, shape=(2, 5))
add("LocalResponseNorm", 3, shape=(2, 5, 4))
add("LocalResponseNorm", 4, 0.5, 0.6, 2.0, shape=(2, 5, 4, 3))
add("LocalResponseNorm", 2, 0.5, shape=(2, 5, 4, 3, 2))


# activations
add("Hardshrink", shape=(3, 4))
add("Softshrink", 0.3, shape=(3, 4))
add("Threshold", 0.1, 2.0, shape=(3, 4))
add("RReLU", 0.2, 0.2, shape=(3, 4))


# losses
def two(draw: Draw) -> tuple[Any, ...]:
    return draw.normal(4, 5), draw.normal(4, 5)


def shares(draw: Draw) -> tuple[Any, ...]:
    return np.log(draw.positive(4, 5)), draw.positive(4, 5)


def counts(draw: Draw) -> tuple[Any, ...]:
    return draw.positive(4, 5), draw.below(5, 4, 5)


def triplet(draw: Draw) -> tuple[Any, ...]:
    return draw.normal(6, 5), draw.normal(6, 5), draw.normal(6, 5)


def labelled(draw: Draw) -> tuple[Any, ...]:
    labels = np.array([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3]])
    return draw.normal(3, 4), labels


FACTORS = torch.tensor([0.5, 1.0, 2.0, 3.0, 0.1], dtype=torch.float64)
for reduction in ("mean", "sum", "none"):
    kept = {"reduction": reduction}
    if reduction != "mean":
        add("KLDivLoss", **kept, inputs=shares)
    add("PoissonNLLLoss", **kept, inputs=counts)
    add("PoissonNLLLoss", False, True, **kept, inputs=counts)
    add("GaussianNLLLoss", **kept, inputs=lambda d: (*two(d), d.positive(4, 5)))
    add("GaussianNLLLoss", full=True, eps=0.4, **kept, inputs=lambda d: (*two(d), d.positive(4, 1)))
    add("GaussianNLLLoss", **kept, inputs=lambda d: (*two(d), d.positive(4)))
    add("SoftMarginLoss", **kept, inputs=lambda d: (30 * d.normal(4, 5), d.signs(4, 5)))
    add("HingeEmbeddingLoss", 0.7, **kept, inputs=lambda d: (d.normal(4, 5), d.signs(4, 5)))
    add("MarginRankingLoss", 0.2, **kept, inputs=lambda d: (d.normal(9), d.normal(9), d.signs(9)))
    add("MultiMarginLoss", **kept, inputs=lambda d: (d.normal(4, 5), d.below(5, 4)))
    add(
        "MultiMarginLoss", 2, 0.7, FACTORS, **kept, inputs=lambda d: (d.normal(4, 5), d.below(5, 4))
    )
    add("MultiLabelMarginLoss", **kept, inputs=labelled)
    add("MultiLabelSoftMarginLoss", **kept, inputs=lambda d: (d.normal(4, 5), d.below(2, 4, 5)))
    add("CosineEmbeddingLoss", 0.1, **kept, inputs=lambda d: (*two(d), d.signs(4)))
    add("TripletMarginLoss", 0.5, 1.5, **kept, inputs=triplet)
    add("TripletMarginLoss", swap=True, **kept, inputs=triplet)
    add("TripletMarginWithDistanceLoss", margin=2.0, swap=True, **kept, inputs=triplet)
add("KLDivLoss", reduction="batchmean", log_target=True, inputs=two)
add("MultiLabelSoftMarginLoss", FACTORS, inputs=lambda d: (d.normal(4, 5), d.below(2, 4, 5)))
add("MultiMarginLoss", inputs=lambda d: (d.normal(5), d.below(5)))
add("MultiLabelMarginLoss", inputs=lambda d: tuple(x[0] for x in labelled(d)))
add("CosineEmbeddingLoss", inputs=lambda d: (d.normal(5), d.normal(5), d.signs()))
add("CosineSimilarity", inputs=two)
add("CosineSimilarity", dim=0, inputs=two)
add("PairwiseDistance", inputs=two)
add("PairwiseDistance", 1.0, keepdim=True, inputs=two)

for reduction in ("mean", "sum", "none"):
    add(
        "NLLLoss2d",
        FACTORS,
        reduction=reduction,
        inputs=lambda d: (d.normal(2, 5, 3, 4), d.below(5, 2, 3, 4)),
    )

# rare classes
for sizes in (([3, 7], 2.0), ([1],), ([2, 5], 2.0, True)):
    add(
        "AdaptiveLogSoftmaxWithLoss",
        6,
        12,
        *sizes,
        inputs=lambda d: (d.normal(9, 6), d.below(12, 9)),
    )
    add("AdaptiveLogSoftmaxWithLoss", 6, 12, *sizes, inputs=lambda d: (d.normal(6), d.below(12)))

# pooling at random places that are given
for dims in (2, 3):
    size = (2, 3, 9, 8, 10)[: dims + 2]
    samples = torch.rand(
        2, 3, dims, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    for options in (
        {"output_size": 4},
        {"output_size": (4, 6, 1)[:dims]},
        {"output_ratio": 0.5},
        {"output_ratio": (0.5, 0.7, 0.3)[:dims], "return_indices": True},
    ):
        add(f"FractionalMaxPool{dims}d", 2, _random_samples=samples, shape=size, **options)
        add(
            f"FractionalMaxPool{dims}d",
            (3, 1, 2)[:dims],
            _random_samples=samples,
            shape=size,
            **options,
        )

# embeddings
for options in (
    {"max_norm": 0.7},
    {"max_norm": 0.7, "norm_type": 1.0},
    {"scale_grad_by_freq": True},
):
    add("Embedding", 6, 3, **options, inputs=lambda d: (d.below(6, 4, 5),))
    add("Embedding", 6, 3, 2, **options, inputs=lambda d: (d.below(6, 4, 5),))
    if "max_norm" not in options:  # of bags torch divides by the counts of other rows
        continue
    for mode in ("sum", "mean"):
        add(
            "EmbeddingBag",
            6,
            3,
            mode=mode,
            **options,
            same_text=False,
            inputs=lambda d: (d.below(6, 4, 5),),
        )

# linear layers with their loss
for options in ({}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 3}):
    for more in ({}, {"bias": True}, {"weight": FACTORS}, {"label_smoothing": 0.2}):
        add(
            "LinearCrossEntropyLoss",
            6,
            5,
            **options,
            **more,
            same_text=False,
            inputs=lambda d: (d.normal(9, 6), d.below(5, 9)),
        )
add(
    "LinearCrossEntropyLoss",
    6,
    5,
    out_features=(2, 3),
    same_text=False,
    inputs=lambda d: (d.normal(9, 6), d.below(5, 9, 2, 3)),
)

# padding
for dims in (1, 2, 3):
    size = (2, 3, 5, 4, 6)[: dims + 2]
    for kind, others in (
        ("Constant", (3.5,)),
        ("Zero", ()),
        ("Reflection", ()),
        ("Replication", ()),
        ("Circular", ()),
    ):
        add(f"{kind}Pad{dims}d", 2, *others, shape=size)
        add(f"{kind}Pad{dims}d", (1, 3, 2, 1, 0, 2)[: 2 * dims], *others, shape=size)
        add(f"{kind}Pad{dims}d", (1, 2, 0, 1, 2, 2)[: 2 * dims], *others, shape=size[1:])
add("ZeroPad2d", (-1, 2, 1, -2), shape=(2, 3, 5, 4))

# recurrence
for kind in ("RNN", "LSTM", "GRU"):
    add(kind, 4, 3, shape=(5, 2, 4))
    add(kind, 4, 3, bias=False, shape=(5, 4))
    add(kind, 4, 3, 2, batch_first=True, bidirectional=True, shape=(2, 5, 4))
    cell = f"{kind}Cell"
    add(cell, 4, 3, shape=(2, 4))
    add(cell, 4, 3, False, shape=(4,))
    if kind != "LSTM":
        add(kind, 4, 3, 2, inputs=lambda d: (d.normal(5, 2, 4), d.normal(2, 2, 3)))
        add(cell, 4, 3, inputs=lambda d: (d.normal(2, 4), d.normal(2, 3)))
add("RNN", 4, 3, 2, "relu", bidirectional=True, shape=(5, 2, 4))
add("RNNCell", 4, 3, nonlinearity="relu", shape=(2, 4))
add("LSTM", 4, 3, 2, bidirectional=True, proj_size=2, shape=(5, 2, 4))


# attention
def thrice(draw: Draw) -> tuple[Any, ...]:
    return draw.normal(5, 2, 6), draw.normal(4, 2, 6), draw.normal(4, 2, 6)


def masked(draw: Draw) -> tuple[Any, ...]:
    padding = np.array([[False, True, False, False], [False, False, False, True]])
    return *thrice(draw), padding, True, draw.below(2, 20, 5, 4).astype(bool) & (np.arange(4) > 0)


plain = {"same_text": False}
MHA = "MultiheadAttention"
add(MHA, 6, 2, inputs=thrice, **plain)
add(MHA, 6, 3, bias=False, add_bias_kv=True, add_zero_attn=True, inputs=thrice, **plain)
add(MHA, 6, 2, inputs=lambda d: tuple(x[:, 0] for x in thrice(d)), **plain)
add(MHA, 6, 2, inputs=lambda d: (*masked(d)[:5], masked(d)[5][0]), **plain)
add(MHA, 6, 2, inputs=lambda d: (*masked(d)[:5], masked(d)[5][:4], False), **plain)
add(MHA, 6, 2, inputs=lambda d: (*masked(d)[:4], False, masked(d)[5][0]), **plain)
add(MHA, 6, 2, add_bias_kv=True, inputs=lambda d: (*masked(d)[:4],), **plain)
add(
    MHA,
    6,
    2,
    kdim=3,
    vdim=5,
    batch_first=True,
    inputs=lambda d: (d.normal(2, 5, 6), d.normal(2, 4, 3), d.normal(2, 4, 5)),
    **plain,
)
for options in ({}, {"norm_first": True, "activation": "gelu", "bias": False}):
    usual = {"dropout": 0.0, **options, **plain}
    add("TransformerEncoderLayer", 6, 2, 8, shape=(5, 2, 6), **usual)
    add("TransformerDecoderLayer", 6, 2, 8, inputs=lambda d: thrice(d)[:2], **usual)
    add("Transformer", 6, 2, 2, 2, 8, inputs=lambda d: thrice(d)[:2], **usual)

# convolution
for dims in (1, 2, 3):
    size = (2, 4, 7, 6, 8)[: dims + 2]
    several = (3, 2, 4)[:dims]
    add(f"Conv{dims}d", 4, 6, 3, shape=size)
    add(f"Conv{dims}d", 4, 6, several, 2, 1, 2, 2, False, shape=size)
    add(f"Conv{dims}d", 4, 6, several, padding="same", dilation=1, shape=size[1:])
    add(f"Conv{dims}d", 4, 2, 3, padding=1, padding_mode="circular", shape=size)
    add(f"Conv{dims}d", 4, 2, several, padding="same", padding_mode="reflect", shape=size)
    size = (2, 4, 3, 4, 2)[: dims + 2]
    name = f"ConvTranspose{dims}d"
    add(name, 4, 6, 3, shape=size)
    add(name, 4, 6, several, 2, 1, 1, 2, False, shape=size)
    add(name, 4, 2, several, 2, 2, 2, dilation=3, shape=size[1:])

# pooling
for dims in (1, 2, 3):
    size = (2, 3, 7, 8, 6)[: dims + 2]
    several = (3, 2, 4)[:dims]
    for one in (size, size[1:]):
        add(f"MaxPool{dims}d", 3, return_indices=True, shape=one)
        add(f"MaxPool{dims}d", several, 2, 1, 1, False, True, shape=one)
        add(f"AvgPool{dims}d", several, 2, 1, shape=one)
    add(f"MaxPool{dims}d", 2, 1, 1, 2, return_indices=True, shape=size)
    add(f"AvgPool{dims}d", 3, 2, 1, True, False, shape=size)
    if dims > 1:
        add(f"AvgPool{dims}d", 3, 2, 1, True, divisor_override=5, shape=size)
    add(f"LPPool{dims}d", 2, 3, 2, inputs=lambda d, size=size: (d.positive(*size),))
    add(f"AdaptiveAvgPool{dims}d", several, shape=size)
    add(f"AdaptiveMaxPool{dims}d", several, True, shape=size)
    add(f"AdaptiveMaxPool{dims}d", 5, shape=size[1:])

# rearrangement and resizing
add("PixelShuffle", 2, shape=(2, 8, 3, 4))
add("PixelUnshuffle", 2, shape=(2, 3, 4, 6))
add("ChannelShuffle", 3, shape=(2, 6, 4, 3))
add("Unfold", (2, 3), 2, 1, (2, 1), shape=(2, 3, 7, 8))
add("Unfold", 2, shape=(3, 4, 5))
add("Fold", (7, 8), (2, 3), 2, 1, (2, 1), shape=(2, 18, 24))
add("Fold", (4, 5), 2, shape=(12, 12))
for dims, smooth in ((1, ["linear"]), (2, ["bilinear", "bicubic"]), (3, ["trilinear"])):
    size = (2, 3, 4, 5, 3)[: dims + 2]
    for mode in ("nearest", "nearest-exact", "area"):
        add("Upsample", (7, 3, 6)[:dims], mode=mode, shape=size)
        add("Upsample", scale_factor=1.7, mode=mode, shape=size)
    for mode in smooth:
        for align in (None, True):
            add("Upsample", (7, 3, 1)[:dims], mode=mode, align_corners=align, shape=size)
            add("Upsample", scale_factor=2.3, mode=mode, align_corners=align, shape=size)
        add("Upsample", scale_factor=2.3, mode=mode, recompute_scale_factor=True, shape=size)
add("UpsamplingBilinear2d", scale_factor=2, shape=(1, 2, 3, 4))
add("UpsamplingNearest2d", 5, shape=(1, 2, 3, 4))
for kind in ("AlphaDropout", "Dropout1d", "Dropout3d", "FeatureAlphaDropout"):
    add(kind, 0.0, shape=(2, 3, 4, 4) if kind == "Dropout3d" else (2, 3, 4))

# bags
for mode in ("mean", "sum", "max"):
    bag = {"mode": mode}
    add("EmbeddingBag", 7, 3, **bag, inputs=lambda d: (d.below(7, 4, 5),))
    add("EmbeddingBag", 7, 3, **bag, inputs=lambda d: (d.below(7, 9), np.array([0, 2, 2, 6])))
    add("EmbeddingBag", 7, 3, padding_idx=2, **bag, inputs=lambda d: (d.below(4, 4, 5),))
add(
    "EmbeddingBag",
    7,
    3,
    mode="sum",
    include_last_offset=True,
    inputs=lambda d: (d.below(7, 9), np.array([0, 4, 9]), d.normal(9)),
)
