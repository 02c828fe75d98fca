"""Integers and bools in the floating-point samples of torch's operator database.

Each operator that both have gets the samples of float32 with whole numbers of an integer dtype. Its
result must be torch's, or the exact one (torch's on the same numbers as float64, cut to the dtype),
or an error. Images of uint8 are resized with the same bits.
"""

from __future__ import annotations

import math
import pathlib
import random
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as torch_functional
from torch.testing._internal.common_methods_invocations import op_db

import plait_core as pc
import plait_nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_operator_database import INVARIANTS, PHASES, compare_all
from torch_database import DRAWS, INPLACE, convert, flat, full_name, ours_of, samples_of

DTYPES = ("bool", "uint8", "int8")
SAMPLES = 3

DIFFERENT = {
    "all": "bool for every dtype, torch: uint8 for uint8",
    "any": "bool for every dtype, torch: uint8 for uint8",
    "masked.argmax": "int64 indices, torch: in the dtype of the elements",
    "masked.argmin": "int64 indices, torch: in the dtype of the elements",
    "nn.functional.threshold": "a value loses its fraction: -0.9 is 0 in uint8, torch refuses it",
    **dict.fromkeys(
        (
            *(f"polygamma.polygamma_n_{n}" for n in range(5)),
            "special.polygamma.special_polygamma_n_0",
        ),
        "infinite at the poles 0, -1, ...; torch: large numbers",
    ),
}
"""Results of another dtype, or with a meaning that torch does not have."""


def whole(value: Any, dtype: str, to: str | None = None) -> Any:
    """Torch's float32 tensors as whole numbers that ``dtype`` holds; none of them is 0."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.dtype != torch.float32:
            return value
        numbers = (value.detach() * 2).round().nan_to_num(1.0, 3.0, -3.0).clamp(-20, 20)
        numbers = torch.where(numbers == 0, torch.ones_like(numbers), numbers)
        numbers = numbers > 0 if dtype == "bool" else numbers
        numbers = numbers.abs() if dtype == "uint8" else numbers
        return numbers.to(getattr(torch, to or dtype))
    if isinstance(value, (tuple, list)):
        return type(value)(whole(each, dtype, to) for each in value)
    if isinstance(value, dict):
        return {name: whole(each, dtype, to) for name, each in value.items()}
    return value


def assert_exact(got: Any, exact: Any) -> None:
    """Fail unless results are the exact numbers, cut to the dtype."""
    for ours, theirs in zip(flat(got), flat(exact), strict=True):
        own, other = ours.detach().numpy(), theirs.detach().numpy()
        assert own.shape == other.shape
        if own.dtype.kind in "iu":
            assert (other == np.round(other)).all(), "a fraction was lost"
            np.testing.assert_array_equal(own, other.astype("int64").astype(own.dtype))
        else:
            other = other.astype("bool") if own.dtype.kind == "b" else other
            np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)


def disagreements(info: Any, dtype: str) -> Iterator[str]:
    function, name = ours_of(info), full_name(info)
    assert function is not None
    theirs = info.inplace_variant if name in INPLACE else info.op
    free = name in DRAWS or name in PHASES or name in INVARIANTS
    for i, sample in islice(samples_of(info, "float32", requires_grad=False), SAMPLES):
        call = whole((sample.input, *sample.args), dtype), whole(sample.kwargs, dtype)
        try:
            arguments, options = convert(call[0]), convert(call[1])
            got = function(*arguments, **options)
        except Exception:  # an error is no wrong value
            continue
        if free:
            continue
        try:
            compare_all(got, theirs(*call[0], **call[1]))
            continue
        except Exception:
            pass  # torch refuses it, or wraps around where plait does not
        wide = [whole(each, dtype, "float64") for each in (sample.input, *sample.args)]
        try:
            exact = theirs(*wide, **whole(sample.kwargs, dtype, "float64"))
        except Exception:  # torch has no value of these numbers
            continue
        try:
            assert_exact(got, exact)
        except AssertionError as error:
            yield f"sample {i}, {sample.summary()}: {' '.join(str(error).split())}"[:500]


def cases() -> list[Any]:
    return [
        pytest.param(info, id=full_name(info))
        for info in op_db
        if ours_of(info) is not None and torch.float32 in info.dtypes
    ]


@pytest.mark.parametrize("info", cases())
def test_integers_have_a_value_or_are_refused(info: Any) -> None:
    torch.manual_seed(0)
    random.seed(0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        lines = [f"{dtype}: {line}" for dtype in DTYPES for line in disagreements(info, dtype)]
    if full_name(info) not in DIFFERENT:
        assert not lines, f"{len(lines)} samples differ\n" + "\n".join(lines[:3])


# ---- images of uint8 -----------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(8))
def test_images_of_bytes_are_resized_with_the_same_bits(seed: int) -> None:
    """Up to four channels: with more, torch 2.13 reads wrong elements of images of one column."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(40):
        shape = (draw.randint(1, 2), draw.randint(1, 4), draw.randint(1, 24), draw.randint(1, 24))
        image = torch.randint(0, 256, shape, dtype=torch.uint8)
        options: dict[str, Any] = {
            "mode": draw.choice(["bilinear", "bicubic"]),
            "antialias": draw.random() < 0.5,
            "align_corners": draw.random() < 0.4,
        }
        if draw.random() < 0.5:
            options["size"] = (draw.randint(1, 40), draw.randint(1, 40))
        else:
            options["scale_factor"] = [draw.choice([0.26, 0.7, 1.1, 2, 3.3]) for _ in range(2)]
            factors = options["scale_factor"]
            if min(math.floor(n * f) for n, f in zip(shape[2:], factors, strict=True)) < 1:
                continue
        try:
            expected = torch_functional.interpolate(image, **options).numpy()
        except RuntimeError:  # an assertion of torch's about its own memory
            continue
        result = F.interpolate(pc.from_numpy(image.numpy()), **options).numpy()
        np.testing.assert_array_equal(result, expected, err_msg=f"{shape} {options}")
