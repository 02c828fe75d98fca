"""Models among the arguments of processes."""

from __future__ import annotations

import pytest

import plait
from plait import nn


def write(_: int, models: dict[str, nn.Module]) -> None:
    with plait.no_grad():
        models["only"].weight.fill_(7.0)
        models["only"].running_mean.fill_(8.0)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_model_is_shared_by_every_start_method(method: str) -> None:
    model = nn.BatchNorm1d(2)
    plait.multiprocessing.spawn(write, ({"only": model},), nprocs=1, start_method=method)
    assert model.weight.tolist() == [7, 7] and model.running_mean.tolist() == [8, 8]
