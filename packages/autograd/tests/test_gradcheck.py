"""gradcheck finds wrong derivatives."""

from __future__ import annotations

import pytest

import plait_autograd as pa
import plait_core as pc


def leaf(*values: float):
    return pc.tensor(list(values), dtype=pc.float64, requires_grad=True)


class Wrong(pa.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 3


def test_right_derivatives_pass():
    assert pa.gradcheck(lambda x, n, y: (x * y * n).sum(), (leaf(1, 2), 3, leaf(4, 5)))
    assert pa.gradgradcheck(lambda x: x * x * x, leaf(1, 2))


def test_a_wrong_derivative_is_named():
    with pytest.raises(
        pa.GradcheckError, match=r"output 0\[1\] / d input 0\[1\] must be 4.* gives 3"
    ):
        pa.gradcheck(Wrong.apply, leaf(1.5, 2.0))
    assert pa.gradcheck(Wrong.apply, leaf(1.0), raise_exception=False) is False


def test_a_cut_gradient_is_found():
    with pytest.raises(pa.GradcheckError, match="output 0 changes with the inputs"):
        pa.gradcheck(lambda x: x.detach() * 2, leaf(1.0))


def test_the_inputs_are_as_before():
    x = leaf(0.1, 0.2)
    pa.gradcheck(lambda x: x * 2, x)
    assert x.tolist() == [0.1, 0.2]


def test_something_must_require_grad():
    with pytest.raises(ValueError, match="at least one input"):
        pa.gradcheck(lambda x: x, pc.ones(1))


def test_forward_mode_is_checked_when_asked() -> None:
    class Wrong(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * 3

    x = pc.tensor([1.0, 2.0], dtype=pc.float64, requires_grad=True)
    assert pa.gradcheck(Wrong.apply, x)
    with pytest.raises(pa.GradcheckError, match=r"d input 0\[0\] must be 2.*forward mode gives 3"):
        pa.gradcheck(Wrong.apply, x, check_forward_ad=True, check_backward_ad=False)
    z = pc.tensor([1 + 2j], dtype=pc.complex128, requires_grad=True)
    for f in (lambda z: z * z.conj(), lambda z: z.abs() * z, lambda z: pc.view_as_real(z).exp()):
        assert pa.gradcheck(f, z, check_forward_ad=True)
