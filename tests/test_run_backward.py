"""`plait_abi.run_backward`: passes for packages that know no engine by name."""

from __future__ import annotations

import pytest

import plait_abi
import plait_core as pc


def test_run_backward_is_a_pass_of_the_engine_in_force() -> None:
    x = pc.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    assert plait_abi.run_backward((y,), (pc.ones(2),)) == ()
    assert x.grad is not None and x.grad.tolist() == [2, 4]
    first, second = plait_abi.run_backward(((x * 3).sum(),), None, (x, y), 4)
    assert first.tolist() == [3, 3] and second is None
    (result,) = plait_abi.run_backward(((x * x).sum(),), (None,), (x,), 2)
    assert result.requires_grad and x.grad.tolist() == [2, 4]


def test_run_backward_names_wrong_arguments() -> None:
    x = pc.ones(1, requires_grad=True)
    for arguments, error, text in (
        ((x,), TypeError, "`roots` must be a tuple"),
        (((3,),), TypeError, "`roots` must hold tensors, got int"),
        (((None,),), TypeError, "`roots` must hold tensors, got NoneType"),
        (((x,), (3,)), TypeError, "`gradients` must hold tensors"),
        (((x,), None, [x]), TypeError, "`inputs` must be a tuple"),
        (((),), ValueError, "got 0 roots"),
        (((x,), (None, None)), ValueError, "1 roots, 2 gradients"),
    ):
        with pytest.raises(error, match=text):
            plait_abi.run_backward(*arguments)
