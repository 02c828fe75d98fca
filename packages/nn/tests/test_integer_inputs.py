"""Integers and bools given to every function: the value of the same numbers as float64, or
an error.

Images of uint8 are resized as PyTorch does it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_nn.functional as F

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
REFUSALS = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError)

Make = Callable[..., Any]


def classes(*shape: int, below: int = 2) -> Any:
    return pc.arange(int(np.prod(shape))).reshape(shape) % below


def padding_mask(x: Make) -> Any:
    options = dict.fromkeys(("training", "need_weights"), False)
    weights = (x(12, 4), x(12), None, None, False, 0.0, x(4, 4), x(4))
    return F.multi_head_attention_forward(*[x(3, 1, 4)] * 3, 4, 2, *weights, **options)


# A call of each function with floats, which `x` makes in a shape.
CALLS: dict[str, Callable[[Make], Any]] = {
    "affine_grid": lambda x: F.affine_grid(x(1, 2, 3), (1, 1, 2, 2)),
    "alpha_dropout": lambda x: F.alpha_dropout(x(4), 0.5, False),
    "batch_norm": lambda x: F.batch_norm(x(2, 3), None, None, x(3), x(3), True),
    "bilinear": lambda x: F.bilinear(x(2, 3), x(2, 2), x(4, 3, 2), x(4)),
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(x(4) > 0, x(4)),
    "binary_cross_entropy_with_logits": lambda x: F.binary_cross_entropy_with_logits(x(4), x(4)),
    "channel_shuffle": lambda x: F.channel_shuffle(x(1, 4, 2), 2),
    "conv_tbc": lambda x: F.conv_tbc(x(4, 1, 2), x(2, 2, 3), x(3)),
    "cosine_embedding_loss": lambda x: F.cosine_embedding_loss(x(2, 3), x(2, 3), classes(2)),
    "cosine_similarity": lambda x: F.cosine_similarity(x(2, 3), x(2, 3)),
    "cross_entropy": lambda x: F.cross_entropy(x(3, 2), classes(3)),
    "ctc_loss": lambda x: F.ctc_loss(x(4, 1, 3), pc.tensor([[1, 2]]), [4], [2]),
    "embedding": lambda x: F.embedding(classes(3), x(2, 3)),
    "embedding_bag": lambda x: F.embedding_bag(classes(2, 2), x(2, 3)),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x(1, 2, 2), 0.5, False),
    "fold": lambda x: F.fold(x(1, 4, 4), (3, 3), 2),
    "gaussian_nll_loss": lambda x: F.gaussian_nll_loss(x(4), x(4), x(4) * x(4)),
    "gelu": lambda x: F.gelu(x(4)),
    "glu": lambda x: F.glu(x(4)),
    "grid_sample": lambda x: F.grid_sample(x(1, 1, 3, 3), x(1, 2, 2, 2) * 0.3),
    "group_norm": lambda x: F.group_norm(x(1, 4, 2), 2),
    "grouped_mm": lambda x: F.grouped_mm(x(2, 3, 4), x(2, 4, 2)),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x(2, 3)) * 0,
    "hinge_embedding_loss": lambda x: F.hinge_embedding_loss(x(4), classes(4) * 2 - 1),
    "instance_norm": lambda x: F.instance_norm(x(1, 2, 4)),
    "kl_div": lambda x: F.kl_div(x(2, 3), x(2, 3), reduction="sum"),
    "layer_norm": lambda x: F.layer_norm(x(2, 3), (3,)),
    "linear": lambda x: F.linear(x(2, 3), x(4, 3), x(4)),
    "linear_cross_entropy": lambda x: F.linear_cross_entropy(x(2, 3), x(4, 3), classes(2)),
    "local_response_norm": lambda x: F.local_response_norm(x(1, 4, 3), 3, 1.0),
    "log_softmax": lambda x: F.log_softmax(x(2, 3), 1, dtype=pc.float64),
    "margin_ranking_loss": lambda x: F.margin_ranking_loss(x(4), x(4), classes(4) * 2 - 1),
    "multi_head_attention_forward": padding_mask,
    "multi_margin_loss": lambda x: F.multi_margin_loss(x(2, 3), classes(2)),
    "multilabel_margin_loss": lambda x: F.multilabel_margin_loss(x(1, 3), classes(1, 3)),
    "multilabel_soft_margin_loss": lambda x: F.multilabel_soft_margin_loss(x(1, 3), classes(1, 3)),
    "native_channel_shuffle": lambda x: F.native_channel_shuffle(x(1, 4, 2), 2),
    "nll_loss": lambda x: F.nll_loss(x(3, 2), classes(3)),
    "normalize": lambda x: F.normalize(x(2, 3)),
    "pad": lambda x: F.pad(x(1, 4), (2, 1), "reflect"),
    "pdist": lambda x: F.pdist(x(3, 2)),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x(1, 4, 2, 2), 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x(1, 1, 2, 2), 2),
    "poisson_nll_loss": lambda x: F.poisson_nll_loss(x(4), x(4)),
    "prelu": lambda x: F.prelu(x(2, 3), x(3)),
    "rms_norm": lambda x: F.rms_norm(x(2, 3), (3,), eps=1e-5),
    "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(
        x(1, 3, 2), x(1, 3, 2), x(1, 3, 2)
    ),
    "soft_margin_loss": lambda x: F.soft_margin_loss(x(4), classes(4) * 2 - 1),
    "softmax": lambda x: F.softmax(x(2, 3), 1, dtype=pc.float64),
    "softmin": lambda x: F.softmin(x(2, 3), 1, dtype=pc.float64),
    "threshold": lambda x: F.threshold(x(4), 1, 2),
    "triplet_margin_loss": lambda x: F.triplet_margin_loss(x(2, 3), x(2, 3), x(2, 3)),
    "triplet_margin_with_distance_loss": lambda x: F.triplet_margin_with_distance_loss(
        x(2, 3), x(2, 3), x(2, 3)
    ),
    "unfold": lambda x: F.unfold(x(1, 2, 3, 3), 2),
}  # fmt: skip
SHAPES = {"1d": (4,), "2d": (4, 4), "3d": (4, 4, 4)}
for _end, _sizes in SHAPES.items():
    _dims = len(_sizes)
    CALLS |= {
        f"adaptive_avg_pool{_end}": lambda x, e=_end, s=_sizes: getattr(F, f"adaptive_avg_pool{e}")(
            x(1, 2, *s), 2
        ),
        f"adaptive_max_pool{_end}": lambda x, e=_end, s=_sizes: getattr(F, f"adaptive_max_pool{e}")(
            x(1, 2, *s), 2
        ),
        f"lp_pool{_end}": lambda x, e=_end, s=_sizes: getattr(F, f"lp_pool{e}")(x(1, 2, *s), 2, 2),
        f"max_pool{_end}": lambda x, e=_end, s=_sizes: getattr(F, f"max_pool{e}")(x(1, 2, *s), 2),
        f"dropout{_end}": lambda x, e=_end, s=_sizes: getattr(F, f"dropout{e}")(
            x(1, 2, *s), 0.5, False
        ),
        f"conv{_end}": lambda x, e=_end, d=_dims, s=_sizes: getattr(F, f"conv{e}")(
            x(1, 2, *s), x(3, 2, *(2,) * d), x(3)
        ),
        f"conv_transpose{_end}": lambda x, e=_end, d=_dims, s=_sizes: getattr(
            F, f"conv_transpose{e}"
        )(x(1, 2, *s), x(2, 3, *(2,) * d), x(3)),
        f"max_unpool{_end}": lambda x, e=_end, d=_dims: getattr(F, f"max_unpool{e}")(
            x(1, 1, *(1,) * d), pc.zeros(1, 1, *(1,) * d, dtype=pc.int64), 2
        ),
    }
for _name in (
    *("celu", "elu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish"),
    *("logsigmoid", "relu", "relu6", "selu", "sigmoid", "silu", "softplus", "softshrink"),
    *("softsign", "tanh", "tanhshrink"),
):
    CALLS[_name] = lambda x, name=_name: getattr(F, name)(x(4))
for _name, _sizes in (
    ("nearest", (4,)),
    ("nearest-exact", (4, 4)),
    ("linear", (4,)),
    ("trilinear", (4, 4, 4)),
    ("area", (4, 4)),
):
    CALLS[f"interpolate-{_name}"] = lambda x, m=_name, s=_sizes: F.interpolate(
        x(1, 2, *s), tuple(n - 1 for n in s), mode=m
    )

ELSEWHERE = {
    *("avg_pool1d", "avg_pool2d", "avg_pool3d"),  # means of int64 lose their fractions
    *("batch_norm_activation", "dropout", "rrelu", "rrelu_", "huber_loss", "l1_loss"),
    *("mse_loss", "smooth_l1_loss", "pairwise_distance", "one_hot", "threshold_"),  # operators
    *("interpolate", "upsample", "upsample_bilinear", "upsample_nearest"),
    *("fractional_max_pool2d", "fractional_max_pool3d"),  # draws windows
}

WRAPS = {"margin_ranking_loss", "hinge_embedding_loss", "triplet_margin_loss"} | {
    *("triplet_margin_with_distance_loss", "cosine_embedding_loss", "poisson_nll_loss")
}
"""Differences and products of narrow and unsigned integers wrap around, as in PyTorch."""


def test_every_function_is_in_the_table() -> None:
    names = {name.partition("-")[0] for name in CALLS}
    functions = {name.removesuffix("_with_indices").strip("_") for name in F.__all__}
    assert not functions - names - ELSEWHERE


def maker(dtype: str, to: str) -> Make:
    """Return what makes tensors of small numbers that ``dtype`` holds, as dtype ``to``."""
    generator = np.random.default_rng(3)

    def make(*shape: int) -> Any:
        low, high = (0, 2) if dtype == "bool" else (0 if dtype.startswith("u") else -3, 16)
        return pc.from_numpy(np.asarray(generator.integers(low, high, shape)).astype(to))

    return make


@pytest.mark.parametrize("name", CALLS)
def test_integers_have_the_value_of_floats_or_are_refused(name: str) -> None:
    for dtype in DTYPES:
        if name == "local_response_norm" and dtype == "int64":
            continue  # means lose their fractions, as in PyTorch
        if name in WRAPS and (dtype.startswith("u") or dtype == "int8"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                got = CALLS[name](maker(dtype, dtype))
            except REFUSALS:
                continue
            want = CALLS[name](maker(dtype, "float64"))
        pairs = zip(
            got if isinstance(got, tuple) else [got],
            want if isinstance(want, tuple) else [want],
            strict=True,
        )
        for ours, theirs in pairs:
            if ours is None:
                continue
            ours, theirs = ours.numpy(), theirs.numpy()
            if ours.dtype.kind in "iub":
                assert (theirs == np.round(theirs)).all(), f"{dtype}: a fraction was lost"
                kind = "bool" if ours.dtype.kind == "b" else "int64"
                np.testing.assert_array_equal(ours, theirs.astype(kind).astype(ours.dtype), dtype)
            else:
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=dtype)


# ---- images of uint8 -----------------------------------------------------------------------------
def test_a_floating_mode_refuses_other_integers() -> None:
    for dtype in DTYPES:
        image = pc.ones(1, 1, 4, 4).to(getattr(pc, dtype))
        for mode in ("bilinear", "bicubic"):
            for antialias in (False, True):
                if dtype != "uint8":
                    with pytest.raises(pc.DTypeError, match=rf"floating-point.*uint8.*{dtype}"):
                        F.interpolate(image, 3, mode=mode, antialias=antialias)
        assert F.interpolate(image, 2, mode="nearest").dtype == image.dtype


# mode, antialias, align_corners, and the first rows of what PyTorch 2.13 gives
RESIZED = [
    ("bilinear", False, False, (3, 8), [74, 44, 40, 68, 95, 123, 151, 174]),
    ("bilinear", False, True, (7, 4), [0, 62, 123, 185]),
    ("bilinear", True, False, (3, 8), [95, 50, 36, 64, 91, 119, 147, 170]),
    ("bilinear", True, True, (7, 4), [16, 74, 139, 178]),
    ("bicubic", False, False, (3, 8), [78, 29, 27, 72, 96, 124, 156, 179]),
    ("bicubic", False, True, (7, 4), [0, 60, 125, 185]),
    ("bicubic", True, False, (3, 8), [99, 43, 23, 60, 93, 122, 152, 175]),
    ("bicubic", True, True, (7, 4), [5, 76, 142, 186]),
]


@pytest.mark.parametrize(("mode", "antialias", "corners", "size", "row"), RESIZED)
def test_images_of_bytes(
    mode: str, antialias: bool, corners: bool, size: tuple[int, int], row: list[int]
) -> None:
    image = (pc.arange(30) * 37 % 256).to(pc.uint8).reshape(1, 1, 5, 6)
    result = F.interpolate(image, size, mode=mode, antialias=antialias, align_corners=corners)
    assert result.dtype == pc.uint8 and result.shape == (1, 1, *size)
    assert result[0, 0, 0].tolist() == row


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_bytes_are_the_rounded_floats(mode: str, antialias: bool) -> None:
    """Columns are rounded before rows are computed: two roundings of at most 1/2, times weights."""
    generator = np.random.default_rng(0)
    for height, width, size in ((9, 7, (4, 12)), (5, 24, (20, 5)), (3, 3, (3, 8)), (1, 5, (4, 1))):
        image = pc.from_numpy(generator.integers(60, 196, (2, 5, height, width)).astype("uint8"))
        options: dict[str, Any] = {"size": size, "mode": mode, "antialias": antialias}
        result = F.interpolate(image, **options).double()
        exact = F.interpolate(image.double(), **options)
        assert float((result - exact).abs().max()) <= 1.6
        flat = F.interpolate(pc.full_like(image, 255), **options)
        assert bool((flat == 255).all())
