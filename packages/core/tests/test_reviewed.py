"""What a stranger found: numbers that do not fit, large logits, poles, layouts of copies."""

from __future__ import annotations

import numpy as np
import pytest

import plait_core as pc

NAN = float("nan")


def test_logarithms_of_large_numbers_keep_their_differences() -> None:
    x = pc.tensor([[1e8, 1e8, 1e8], [1e4, 1e4, 1e4 + 1]])
    want = [[-np.log(3)] * 3, [-1.5514, -1.5514, -0.5514]]
    np.testing.assert_allclose(pc.log_softmax(x, 1).numpy(), want, atol=1e-3)
    np.testing.assert_allclose(
        pc.cross_entropy(x, pc.tensor([0, 2]), reduction="none").numpy(),
        [np.log(3), 0.5514],
        atol=1e-3,
    )
    assert pc.log_softmax(pc.tensor([float("inf"), 1.0]), 0).isnan().all().item()


def test_a_tensor_without_values_is_not_copied() -> None:
    x = pc.zeros(3)
    with pytest.raises(NotImplementedError, match=r"copy_.*`src`.*meta"):
        x.copy_(pc.empty(3, device="meta"))
    with pytest.raises(NotImplementedError, match="meta"):
        x[:] = pc.empty(3, device="meta")


@pytest.mark.parametrize("value", [300, -1, NAN, 3e9])
def test_numbers_that_do_not_fit_are_refused(value: float) -> None:
    x = pc.zeros(2, dtype=pc.uint8)
    mask = pc.tensor([True, False])
    for write in (
        lambda: x.fill_(value),
        lambda: x.index_fill(0, pc.tensor([0]), value),
        lambda: pc.scatter(x, 0, pc.tensor([0]), value),
        lambda: x.__setitem__(0, value),
        lambda: x.__setitem__(mask, value),
        lambda: x.__setitem__([0], value),
        lambda: pc.full((2,), value, dtype=pc.uint8),
    ):
        with pytest.raises(ValueError, match=r"`values?` must fit in uint8"):
            write()
    if isinstance(value, int):
        with pytest.raises(ValueError, match="must fit in uint8"):
            x.masked_fill(mask, value)
        with pytest.raises(ValueError, match="must fit in uint8"):
            pc.where(mask, x, value)
        with pytest.raises(ValueError, match="must fit in uint8"):
            x.clamp(value, 400)
    assert x.tolist() == [0, 0]


def test_a_complex_number_is_not_written_into_real_ones() -> None:
    x = pc.zeros(2)
    with pytest.raises(TypeError, match="2j"):
        x[0] = 2j


def test_poles() -> None:
    x = pc.tensor([-1e-20, -1e-15], dtype=pc.float64)
    assert pc.digamma(x).tolist() == pytest.approx([1e20, 1e15], rel=1e-12)
    assert pc.polygamma(1, x).tolist() == pytest.approx([1e40, 1e30], rel=1e-12)


def test_copies_of_expanded_tensors_are_in_order() -> None:
    x = pc.ones(3).expand(2, 3)
    assert x.clone().stride() == (3, 1)
    assert x.double().view(-1).shape == (6,)
    assert pc.zeros(2, 3).t().clone().stride() == (1, 3)
    assert pc.zeros(4, 1, 3, 2).permute(0, 3, 1, 2).clone().stride()[1] == 1


def test_functions_know_their_first_tensor_as_input() -> None:
    x = pc.ones(2, 2)
    assert pc.sum(input=x).item() == 4
    assert pc.matmul(input=x, other=x).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with pytest.raises(TypeError, match="twice"):
        x.sum(input=x)  # type: ignore[call-overload, unused-ignore]


def test_empty_dimensions_and_no_dimensions() -> None:
    assert [tuple(part.shape) for part in pc.ones(0, 2).chunk(3)] == [(0, 2)] * 3
    assert pc.tensor(5).movedim(0, 0).item() == 5
    assert pc.arange(-1.5, 2, 1, dtype=pc.int32).tolist() == [-1, 0, 1, 2]
    assert not pc.isclose(pc.tensor([2**62]), pc.tensor([2**62 + 1]), rtol=0, atol=0).item()
