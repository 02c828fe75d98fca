import math

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    get_total_norm,
    parameters_to_vector,
    vector_to_parameters,
)


def with_gradients(*gradients):
    parameters = []
    for gradient in gradients:
        parameter = nn.Parameter(pc.zeros(len(gradient)))
        parameter.grad = pc.tensor(gradient)
        parameters.append(parameter)
    return parameters


@pytest.mark.parametrize(
    ("p", "total"), [(2.0, 13.0), (1.0, 19.0), (math.inf, 12.0), (3.0, 1880 ** (1 / 3) + 0.0)]
)
def test_clip_grad_norm(p, total):
    a, b = with_gradients([3.0, -4.0], [12.0])
    total = sum(abs(v) ** p for v in (3, 4, 12)) ** (1 / p) if math.isfinite(p) else 12.0
    assert clip_grad_norm_([a, b], 1.0, p).item() == pytest.approx(total, rel=1e-6)
    np.testing.assert_allclose(a.grad.numpy(), np.array([3, -4]) / total, rtol=1e-5)
    np.testing.assert_allclose(b.grad.numpy(), np.array([12]) / total, rtol=1e-5)
    assert get_total_norm([a.grad, b.grad], p).item() == pytest.approx(1, rel=1e-5)


def test_small_gradients_stay():
    (a,) = with_gradients([0.3, 0.4])
    gradient = a.grad
    assert clip_grad_norm_(a, 1.0).item() == pytest.approx(0.5)
    assert a.grad is gradient
    np.testing.assert_array_equal(gradient.numpy(), np.array([0.3, 0.4], np.float32))


def test_gradients_that_are_not_there():
    assert clip_grad_norm_([nn.Parameter(pc.zeros(1))], 1.0).item() == 0.0
    assert clip_grad_norm_([], 1.0).item() == 0.0
    used = iter([])
    with pytest.warns(UserWarning, match="an empty generator, no gradient clipping"):
        assert clip_grad_norm_(used, 1.0).item() == 0.0
    clip_grad_value_([nn.Parameter(pc.zeros(1))], 1.0)


def test_a_norm_that_is_not_finite():
    (a,) = with_gradients([math.inf, 1.0])
    with pytest.raises(RuntimeError, match=r"the norm of order 2.0 of the gradients is inf"):
        clip_grad_norm_(a, 1.0, error_if_nonfinite=True)
    assert a.grad.tolist() == [math.inf, 1.0]


def test_clip_grad_value():
    a, b = with_gradients([3.0, -4.0], [0.5])
    clip_grad_value_(iter([a, b]), 1)
    assert a.grad.tolist() == [1.0, -1.0] and b.grad.tolist() == [0.5]


def test_vectors():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = parameters_to_vector(net.parameters())
    assert vector.shape == (13,) and vector.requires_grad
    vector_to_parameters(pc.arange(13.0), net.parameters())
    assert net[0].weight.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert net[1].bias.tolist() == [12.0]
    assert net[0].weight.requires_grad
    with pytest.raises(ValueError, match=r"`vec` must have shape \(13,\); got \(12,\)"):
        vector_to_parameters(pc.zeros(12), net.parameters())
    with pytest.raises(TypeError, match="`vec` must be a Tensor; got list"):
        vector_to_parameters([1.0], net.parameters())


def test_the_norm_of_several_dtypes_has_the_widest_of_them():
    halves, floats = pc.zeros(3, dtype=pc.float16), pc.full((4,), 1e5)
    halves.fill_(2)
    total = get_total_norm([halves, floats])
    assert total.dtype == pc.float32
    assert total.item() == pytest.approx(2e5, rel=1e-6)  # infinite as a float16


@pytest.mark.parametrize("foreach", [None, False, True])
def test_clipping_reads_no_values(foreach):
    # tensors on meta have none: what reads them fails
    parameters = [nn.Parameter(pc.empty(n, device="meta")) for n in (3, 0, 2)]
    for parameter in parameters:
        parameter.grad = pc.empty_like(parameter)
    for p in (2.0, 1.0, 3.0, math.inf):
        norm = clip_grad_norm_(parameters, 1.0, p, foreach=foreach)
        assert str(norm.device) == "meta" and norm.shape == ()
    clip_grad_value_(parameters, 0.5, foreach=foreach)
    with pytest.raises(RuntimeError, match="meta"):
        clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
