"""Errors about arguments of the wrong kind name the function and the argument."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F
from plait_nn import distributions

X = pc.ones(2, 3, 4)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.glu(X, "a"), "glu: `dim` must be an int, got str"),
        (lambda: F.pad(X, "ab"), "pad: `pad` must be an int or a list of ints, got str 'ab'"),
        (
            lambda: F.pad(X, [1, None]),
            "pad: `pad` must be an int or a list of ints, got list [int, NoneType]",
        ),
        (lambda: F.dropout(X, "a"), "dropout: `p` must be a number, got str"),
        (lambda: F.hardtanh(X, "a"), "hardtanh: `min_val` must be a number, got str"),
        (lambda: F.one_hot(X, "a"), "one_hot: `num_classes` must be an int, got str"),
        (
            lambda: F.adaptive_avg_pool1d(X, None),
            "adaptive_avg_pool1d: `output_size` must be an int or a sequence of ints, got None",
        ),
        (
            lambda: F.interpolate(X, size="a"),
            "interpolate: `size` must be an int or a sequence of ints or None, got str",
        ),
        (
            lambda: F.native_channel_shuffle("a", 2),
            "native_channel_shuffle: `input` must be a Tensor, got str",
        ),
        (lambda: nn.Conv2d(2, 2, 3, groups="a"), "Conv2d: `groups` must be an int, got str"),
        (lambda: nn.Dropout("a"), "Dropout: `p` must be a number, got str"),
        (lambda: nn.LSTM(2, 2, dropout="a"), "LSTM: `dropout` must be a number, got str"),
        (
            lambda: nn.Embedding(2, 2, "a"),
            "Embedding: `padding_idx` must be an int or None, got str",
        ),
        (
            lambda: nn.Transformer(num_encoder_layers="a"),
            "Transformer: `num_encoder_layers` must be an int, got str",
        ),
        (
            lambda: nn.LayerNorm(None),
            "LayerNorm: `normalized_shape` must be an int or a sequence of ints, got None",
        ),
        (lambda: nn.init.normal_("a"), "normal_: `tensor` must be a Tensor, got str"),
        (
            lambda: nn.init.xavier_uniform_(X, "a"),
            "xavier_uniform_: `gain` must be a number, got str",
        ),
        (
            lambda: nn.utils.clip_grad_norm_(3, 1.0),
            "clip_grad_norm_: `parameters` must be a Tensor or a sequence of Tensors, got int",
        ),
        (
            lambda: distributions.Dirichlet("a"),
            "Dirichlet: `concentration` must be a Tensor, got str",
        ),
    ],
)  # fmt: skip
def test_the_argument_is_named(call: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == text


def test_a_wrong_value_of_the_right_kind_keeps_its_error() -> None:
    for call in (lambda: F.glu(X, 5), lambda: F.glu(X, -4)):
        with pytest.raises(IndexError, match=r"`dim` must be in \[-3, 2\] for shape \(2, 3, 4\)"):
            call()
    with pytest.raises(ValueError, match="`p` must be in"):
        F.dropout(X, 3)


def test_functions_stay_themselves() -> None:
    assert list(inspect.signature(F.glu).parameters) == ["input", "dim"]
    assert list(inspect.signature(nn.Conv2d).parameters)[:2] == ["in_channels", "out_channels"]
    assert pickle.loads(pickle.dumps(F.glu)) is F.glu
    with pytest.raises(TypeError, match=r"Conv2d.__init__\(\) missing 3 required positional"):
        nn.Conv2d()

    class Own(nn.Conv2d):
        pass

    with pytest.raises(TypeError, match="Conv2d: `groups` must be an int, got str"):
        Own(2, 2, 3, groups="a")
