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


class WrongTangent(pa.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 3


def test_forward_mode_is_checked_on_request() -> None:
    x = pc.tensor([1.0, 2.0], dtype=pc.float64, requires_grad=True)
    assert pa.gradcheck(WrongTangent.apply, x)
    with pytest.raises(pa.GradcheckError, match=r"d input 0\[0\] must be 2.*forward mode gives 3"):
        pa.gradcheck(WrongTangent.apply, x, check_forward_ad=True, check_backward_ad=False)
    z = pc.tensor([1 + 2j], dtype=pc.complex128, requires_grad=True)
    for f in (lambda z: z * z.conj(), lambda z: z.abs() * z, lambda z: pc.view_as_real(z).exp()):
        assert pa.gradcheck(f, z, check_forward_ad=True)


@pytest.mark.parametrize("dtype", [pc.float64, pc.complex128])
def test_fast_mode_passes_and_finds(dtype):
    x = (pc.randn(40, dtype=dtype) + 2).requires_grad_()
    y = (pc.randn(40, dtype=dtype) + 2).requires_grad_()
    calls = []

    def function(x, y):
        calls.append(1)
        return x * y, (x / y).sum()

    assert pa.gradcheck(function, (x, y), fast_mode=True, check_forward_ad=True)
    assert len(calls) < 12  # whatever the number of elements
    assert x.is_leaf
    with pytest.raises(pa.GradcheckError, match=r"output 0 for input 0 must be .* in a random"):
        pa.gradcheck(Wrong.apply, x, fast_mode=True)
    with pytest.raises(pa.GradcheckError, match="changes with the inputs but requires no grad"):
        pa.gradcheck(lambda x: x.detach() * 2, x, fast_mode=True)
    assert pa.gradgradcheck(lambda x, y: x * x * y, (x, y), fast_mode=True)


def test_fast_mode_leaves_the_inputs_and_takes_empty_ones():
    x = leaf(0.1, 0.2)
    empty = pc.zeros(0, dtype=pc.float64, requires_grad=True)
    assert pa.gradcheck(lambda x, y: (x * 3, y * 2), (x, empty), fast_mode=True)
    assert x.tolist() == [0.1, 0.2]


@pytest.mark.parametrize("fast", [False, True])
def test_a_wrong_tangent_is_found(fast):
    assert pa.gradcheck(WrongTangent.apply, leaf(1.0), fast_mode=fast)
    with pytest.raises(pa.GradcheckError, match="forward mode gives 3"):
        pa.gradcheck(WrongTangent.apply, leaf(1.0), check_forward_ad=True, fast_mode=fast)


class Restless(pa.Function):
    passes = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Restless.passes += 1
        return g * (2 + 1e-9 * Restless.passes)


def test_two_passes_must_agree():
    with pytest.raises(pa.GradcheckError, match=r"at most nondet_tol=0\.0; those of output 0"):
        pa.gradcheck(Restless.apply, leaf(1.0))
    assert pa.gradcheck(Restless.apply, leaf(1.0), nondet_tol=1e-6)


def test_dtypes_of_gradients():
    assert pa.gradcheck(lambda x: x * 2, leaf(1.0), check_grad_dtypes=True)


def test_undefined_gradients_of_other_outputs_count_as_zeros():
    class Two(pa.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return (0 if a is None else a * 2) + (1 if b is None else b * 3)  # 1 is wrong

    with pytest.raises(pa.GradcheckError, match=r"output 0\[0\]"):
        pa.gradcheck(Two.apply, leaf(1.0))


def test_checks_without_meaning_are_refused():
    for name in ("check_batched_grad", "check_batched_forward_grad"):
        with pytest.raises(NotImplementedError, match="must be False: is_grads_batched"):
            pa.gradcheck(lambda x: x, leaf(1.0), **{name: True})
    with pytest.raises(NotImplementedError, match="gen_non_contig_grad_outputs"):
        pa.gradgradcheck(lambda x: x, leaf(1.0), gen_non_contig_grad_outputs=True)


def test_gradgradcheck_takes_gradients_of_the_outputs():
    seed = leaf(0.3, -2.0)
    assert pa.gradgradcheck(lambda x: x.exp(), leaf(1.0, 2.0), seed)
    assert pa.gradgradcheck(lambda x: x.exp(), leaf(1.0, 2.0), check_fwd_over_rev=True)

    class Half(pa.Function):  # linear in the gradient, wrongly
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.detach() * 2

    assert pa.gradcheck(Half.apply, leaf(1.0, 2.0))
    with pytest.raises(pa.GradcheckError):
        pa.gradgradcheck(Half.apply, leaf(1.0, 2.0), seed)


def test_a_dtype_that_rounds_the_perturbation_away_is_warned_about():
    x = pc.ones(2, requires_grad=True)
    with pytest.warns(
        UserWarning, match=r"Input #0 requires gradient and is not a double .*float32"
    ):
        pa.gradcheck(lambda v: v * 2, x, raise_exception=False)
    assert pa.gradcheck(lambda v: v * 2, x, eps=1e-2, atol=1e-2)
