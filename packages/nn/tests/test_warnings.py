"""Calls of functions and layers that succeed with a warning, as in PyTorch: its class and begin."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F

DEFAULT = "Default grid_sample and affine_grid behavior has changed to align_corners=False"
REDUCTION = "size_average and reduce args will be deprecated, please use reduction='sum' instead."
UPSAMPLE = "`nn.functional.{}` is deprecated. Use `nn.functional.interpolate` instead."
SHAPES = r"Using a target size \(.*\) that is different to the input size \(.*\)"
EMPTY = "Initializing zero-element tensors is a no-op"
DROPOUT = "dropout option adds dropout after all but last recurrent layer, so non-zero dropout"
IMAGE = pc.ones(1, 1, 2, 2)

WARNING: dict[str, tuple[str, type[Warning], Callable[[], Any]]] = {
    "grid_sample": (DEFAULT, UserWarning, lambda: F.grid_sample(IMAGE, pc.zeros(1, 2, 2, 2))),
    "affine_grid": (DEFAULT, UserWarning, lambda: F.affine_grid(pc.zeros(1, 2, 3), (1, 1, 2, 2))),
    "upsample": (UPSAMPLE.format("upsample"), UserWarning, lambda: F.upsample(IMAGE, 4)),
    "upsample_nearest": (
        UPSAMPLE.format("upsample_nearest"),
        UserWarning,
        lambda: F.upsample_nearest(IMAGE, 4),
    ),
    "upsample_bilinear": (
        UPSAMPLE.format("upsample_bilinear"),
        UserWarning,
        lambda: F.upsample_bilinear(IMAGE, 4),
    ),
    "softmax": (
        "Implicit dimension choice for softmax has been deprecated",
        UserWarning,
        lambda: F.softmax(pc.ones(2, 2)),
    ),
    "dropout2d": (
        "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout",
        UserWarning,
        lambda: F.dropout2d(pc.ones(2, 3, 4)),
    ),
    "mse_loss": (SHAPES, UserWarning, lambda: F.mse_loss(pc.ones(2, 3), pc.ones(2, 1))),
    "size_average": (REDUCTION, UserWarning, lambda: nn.MSELoss(size_average=False)),
    "kl_div": (
        "reduction: 'mean' divides the total loss by both the batch size and the support size",
        UserWarning,
        lambda: F.kl_div(pc.ones(2), pc.ones(2)),
    ),
    "LSTM": (DROPOUT, UserWarning, lambda: nn.LSTM(2, 3, dropout=0.5)),
    "Linear": (EMPTY, UserWarning, lambda: nn.Linear(0, 3, bias=False)),
    "NLLLoss2d": ("`NLLLoss2d` has been deprecated.", FutureWarning, nn.NLLLoss2d),
    "Container": ("`nn.Container` is deprecated.", FutureWarning, nn.Container),
    "init.uniform": (
        "`nn.init.uniform` is now deprecated in favor of `nn.init.uniform_`.",
        FutureWarning,
        lambda: nn.init.uniform(pc.empty(2)),
    ),
    "clip_grad_norm": (
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of",
        FutureWarning,
        lambda: nn.utils.clip_grad_norm(nn.Linear(2, 2).parameters(), 1.0),
    ),
    "weight_norm": (
        "`torch.nn.utils.weight_norm` is deprecated in favor of",
        FutureWarning,
        lambda: nn.utils.weight_norm(nn.Linear(2, 2)),
    ),
}


@pytest.mark.parametrize("name", WARNING)
def test_a_call_warns_about_its_own_line(name: str) -> None:
    text, category, call = WARNING[name]
    with pytest.warns(category, match=f"^{text}") as seen:
        call()
    assert len(seen) == 1
    assert seen[0].filename == __file__


def test_older_names_keep_signatures() -> None:
    assert nn.init.uniform.__name__ == "uniform"
    assert [*inspect.signature(nn.init.uniform).parameters][:3] == ["tensor", "a", "b"]
