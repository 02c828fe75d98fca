"""The models of the benchmarks: their sizes, their training in float32, and their operators."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plait

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import accuracy  # noqa: E402
import hardware_peak  # noqa: E402
import models  # noqa: E402
import operator_groups  # noqa: E402

# As published, with the classifier of 1000 classes.
PARAMETERS = {
    "alexnet": 61_100_840,
    "vgg19": 143_667_240,
    "resnet50": 25_557_032,
    "mobilenet": 3_504_872,
    "gpt2": 124_439_808,
    "bert": 108_891_648,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_models_have_the_published_numbers_of_parameters(name: str) -> None:
    module = models.MODELS[name].build(plait)
    assert sum(p.numel() for p in module.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_inference_models_give_finite_outputs(name: str) -> None:
    model = models.MODELS[name]
    module = models.fill(plait, model.build(plait, **model.small[0])).eval()
    with plait.no_grad():
        output = module(*map(plait.from_numpy, model.data(2, **model.small[1])))
    assert output.shape[:2] == (2, 10)
    assert np.isfinite(output.numpy()).all()


# Batch normalisation divides by small deviations, which multiplies rounding.
@pytest.mark.parametrize(
    ("name", "losses", "weights"),
    [
        ("alexnet", 1e-6, 1e-3),
        ("vgg19", 1e-6, 1e-3),
        ("resnet50", 1e-2, 0.5),
        ("mobilenet", 1e-2, 0.5),
        ("gnmt", 1e-6, 1e-4),
        ("neumf", 1e-6, 1e-4),
    ],
)
def test_a_training_in_float32_follows_float64(name: str, losses: float, weights: float) -> None:
    batch = 64 if name == "neumf" else 8
    result = accuracy.distance(plait, name, steps=3, batch=batch, small=True)
    assert 0 < result.losses < losses
    assert 0 < result.weights < weights


def test_starting_values_depend_on_the_name_alone() -> None:
    first, second = (models.starting_value("a.weight", (3, 4)) for _ in range(2))
    assert (first == second).all()
    assert (first != models.starting_value("b.weight", (3, 4))).any()
    assert (models.starting_value("norm.weight", (3,)) == 1).all()
    assert (models.starting_value("norm.bias", (3,)) == 0).all()


def convolution(weight: str, options: str, name: str = "conv2d") -> str:
    return f"{name}(float32[8, 64, 56, 56], float32[{weight}], None, {options})"


@pytest.mark.parametrize(
    ("signature", "group"),
    [
        (convolution("64, 64, 3, 3", "(1, 1), (1, 1), (1, 1), 1"), "convolution 3x3, forward"),
        (convolution("64, 64, 3, 3", "(2, 2), (1, 1), (1, 1), 1"), "convolution other, forward"),
        (convolution("256, 64, 1, 1", "(1, 1), (0, 0), (1, 1), 1"), "convolution 1x1, forward"),
        (
            convolution("64, 1, 3, 3", "(1, 1), (1, 1), (1, 1), 64"),
            "convolution depthwise, forward",
        ),
        (
            "conv2d_activation(float32[8, 64, 56, 56], float32[64, 1, 3, 3], float32[64], (1, 1), "
            "(1, 1), (1, 1), 64, 'hardtanh', None, None, None)",
            "convolution depthwise, forward",
        ),
        (
            "conv2d_backward_weight (backward)(float32[8, 64, 56, 56], float32[8, 32, 56, 56], "
            "(64, 32, 3, 3), (1, 1), (1, 1), (1, 1), 1)",
            "convolution 3x3, by weight",
        ),
        (
            "conv2d_backward_input (backward)(float32[8, 64, 56, 56], float32[64, 32, 1, 1], "
            "(8, 32, 56, 56), (1, 1), (0, 0), (1, 1), 1)",
            "convolution 1x1, by input",
        ),
        ("mm (backward)(float32[24, 50], float32[50, 32])", "matrix product, backward"),
        ("relu_(float32[2])", "activation"),
        ("sgd_step([float32[8]], [float32[8]])", "optimizer"),
        ("native_batch_norm(float32[4, 8, 2, 2], float32[8])", "batch norm"),
        ("sort(float32[8])", "rest"),
    ],
)
def test_operators_belong_to_groups(signature: str, group: str) -> None:
    assert operator_groups.group_of(signature) == group


def test_groups_are_sums_with_a_floor() -> None:
    def average(key: str, time: float, **amounts: Any) -> SimpleNamespace:
        values = {"category": "operator", "count": 2, "self_flops": 0, "self_bytes": 0, **amounts}
        return SimpleNamespace(key=key, self_cpu_time_total=time, **values)

    peak = plait.profiler.Peak(flops=1e9, bandwidth=1e9)
    result = operator_groups.grouped(
        [
            average("mm(a)", 4000.0, self_flops=2_000_000),
            average("linear(a)", 2000.0, self_bytes=4_000_000),
            average("relu(a)", 1000.0),
            average("step", 9000.0, category="range"),
        ],
        2,
        peak,
    )
    assert [(group.name, group.count, group.time) for group in result] == [
        ("matrix product", 2.0, 3.0),
        ("activation", 1.0, 0.5),
    ]
    assert result[0].floor == pytest.approx(3.0)
    assert "all" in operator_groups.table(result)


def test_the_widest_registers_that_may_be_used() -> None:
    text = "flags : fma avx2 avx512f"
    assert hardware_peak.flags_for(text, "") == ["-DWIDTH=16", "-mavx512f"]
    assert hardware_peak.flags_for(text, "avx2") == ["-DWIDTH=8", "-mavx2", "-mfma"]
    assert hardware_peak.flags_for(text, "base") == ["-DWIDTH=4"]
    assert hardware_peak.flags_for("Features : asimd", "") == ["-DWIDTH=4"]
