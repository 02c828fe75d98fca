"""backward and grad: values, accumulation, errors, lifetime of the graph."""

from __future__ import annotations

import math

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc


def leaf(*values: float, dtype=pc.float32):
    return pc.tensor(list(values), dtype=dtype, requires_grad=True)


def test_backward_of_a_product_and_a_sum():
    x, w = leaf(1, 2, 3), leaf(4, 5, 6)
    (x * w + x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [5, 6, 7])
    np.testing.assert_array_equal(w.grad.numpy(), [1, 2, 3])


def test_gradients_accumulate_in_place():
    x = leaf(1, 2)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    np.testing.assert_array_equal(first.numpy(), [5, 5])


def test_a_gradient_that_the_caller_holds_is_not_written():
    x, g = leaf(1, 2), pc.tensor([1.0, 1.0])
    y = x + 0
    y.backward(g)
    (x * 5).sum().backward()
    np.testing.assert_array_equal(g.numpy(), [1, 1])
    np.testing.assert_array_equal(x.grad.numpy(), [6, 6])


def test_two_leaves_of_one_gradient_do_not_share_it():
    x, w = leaf(1, 2), leaf(1, 2)
    (x + w).sum().backward()
    (x * 1).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])
    np.testing.assert_array_equal(w.grad.numpy(), [1, 1])


def test_a_tensor_used_many_times_gets_the_sum():
    x = leaf(2)
    y = x * x
    (y * y + y + x).sum().backward()
    assert x.grad.item() == 4 * 8 + 4 + 1


def test_broadcasting_is_undone():
    x, w = pc.ones(3, 1, requires_grad=True), pc.ones(4, requires_grad=True)
    (x * w).sum().backward()
    assert x.grad.shape == (3, 1) and w.grad.shape == (4,)
    np.testing.assert_array_equal(x.grad.numpy(), np.full((3, 1), 4))
    np.testing.assert_array_equal(w.grad.numpy(), np.full(4, 3))


def test_gradients_keep_the_dtype_of_their_leaf():
    x, w = leaf(1, 2), leaf(3, 4, dtype=pc.float64)
    (x * w).sum().backward()
    assert x.grad.dtype == pc.float32 and w.grad.dtype == pc.float64


def test_several_roots_with_gradients():
    x = leaf(1, 2)
    y = x * 2
    pa.backward([y, y, (x * x).sum()], [pc.tensor([1.0, 2.0]), pc.tensor([10.0, 20.0]), None])
    np.testing.assert_array_equal(x.grad.numpy(), [2 + 20 + 2, 4 + 40 + 4])


def test_a_leaf_can_be_a_root():
    x = leaf(1, 2)
    x.backward(pc.tensor([3.0, 4.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [3, 4])


def test_grad_does_not_change_leaves():
    x, w = leaf(1, 2), leaf(3, 4)
    h = x * w
    gx, gh = pa.grad((h * h).sum(), [x, h])
    np.testing.assert_array_equal(gx.numpy(), 2 * np.array([3, 8]) * [3, 4])
    np.testing.assert_array_equal(gh.numpy(), [6, 16])
    assert x.grad is None and w.grad is None


def test_grad_evaluates_only_the_paths_to_its_inputs():
    class Never(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("this branch leads to no input")

    x, w = leaf(1), leaf(2)
    (g,) = pa.grad((Never.apply(w) * x).sum(), x)
    assert g.item() == 2


def test_unused_inputs():
    x, w = leaf(1), leaf(2)
    with pytest.raises(RuntimeError, match=r"input 1 of shape \(1,\) was not used"):
        pa.grad((x * 2).sum(), [x, w])
    g, none = pa.grad((x * 2).sum(), [x, w], allow_unused=True)
    assert g.item() == 2 and none is None
    _, zero = pa.grad((x * 2).sum(), [x, w], materialize_grads=True)
    assert zero.tolist() == [0.0]


def test_backward_with_inputs_does_not_change_other_leaves():
    x, w = leaf(1), leaf(2)
    y = (x * w).sum()
    pa.backward(y, inputs=[x], retain_graph=True)
    pa.backward(y, inputs=x)
    assert x.grad.item() == 4 and w.grad is None


def test_derivatives_of_derivatives():
    x = pc.tensor(2.0, dtype=pc.float64, requires_grad=True)
    y, result = x * x * x * x, []
    for _ in range(4):
        (y,) = pa.grad(y, x, create_graph=True)
        result.append(y.item())
    assert result == [32, 48, 48, 24]


def test_create_graph_records_the_gradient_of_a_leaf():
    x = leaf(3)
    (x * x * x).sum().backward(create_graph=True)
    first, x.grad = x.grad, None
    first.sum().backward()
    assert first.item() == 27 and x.grad.item() == 18


def test_an_accumulated_gradient_with_history_is_not_overwritten():
    x = leaf(3)
    (x * x).sum().backward(create_graph=True)
    reference = x.grad
    (x * 2).sum().backward()
    assert reference.item() == 6 and x.grad.item() == 8
    assert reference.requires_grad


def test_a_second_backward_needs_retain_graph():
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match=r"mul: backward ran a second time.*retain_graph=True"):
        y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4, 8])


def test_a_graph_that_saved_nothing_may_run_twice():
    x = leaf(1)
    y = x + x
    y.backward()
    y.backward()
    assert x.grad.item() == 4


def test_errors_of_roots():
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match=r"result 0 has shape \(2,\)"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"result 0 of shape \(\) does not require grad"):
        pc.ones(2).sum().backward()
    with pytest.raises(pc.ShapeError, match=r"must have its shape \(2,\); got \(3,\)"):
        (x * 2).backward(pc.ones(3))
    with pytest.raises(pc.DTypeError, match="must be float32; got int64"):
        (x * 2).backward(pc.tensor([1, 2]))
    with pytest.raises(RuntimeError, match=r"input 0 of shape \(2,\) does not require grad"):
        pa.grad((x * 2).sum(), pc.ones(2))
    with pytest.raises(ValueError, match="one entry for each result"):
        pa.backward([x.sum(), x.sum()], [None])
    with pytest.raises(ValueError, match="must not be empty"):
        pa.grad(x.sum(), [])
    with pytest.raises(TypeError, match="must be a tensor or a sequence"):
        pa.grad(x.sum(), 3)


def test_retain_grad_keeps_a_gradient_within_the_graph():
    x = leaf(1, 2)
    h = x * 2
    h.retain_grad()
    (h * h).sum().backward()
    np.testing.assert_array_equal(h.grad.numpy(), [4, 8])
    (x * 2).sum().backward()
    np.testing.assert_array_equal(h.grad.numpy(), [4, 8])
    with pytest.raises(RuntimeError, match="must require grad"):
        pc.ones(2).retain_grad()


def test_retain_grad_follows_an_in_place_operator():
    x = leaf(1, 2)
    h = x * 2
    h.retain_grad()
    h.mul_(3)
    h.sum().backward()
    np.testing.assert_array_equal(h.grad.numpy(), [1, 1])


def test_setting_grad_is_checked():
    x = leaf(1, 2)
    x.grad = pc.ones(2)
    x.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])
    x.grad = None
    assert x.grad is None
    with pytest.raises(pc.ShapeError, match=r"shape \(2,\) must have its shape; got \(3,\)"):
        x.grad = pc.ones(3)
    with pytest.raises(pc.DTypeError, match="float32 must have its dtype; got float64"):
        x.grad = pc.ones(2, dtype=pc.float64)
    with pytest.raises(ValueError, match="its own gradient"):
        x.grad = x


def test_requires_grad_is_for_floating_leaves():
    with pytest.raises(RuntimeError, match=r"floating point and complex dtype.*int64"):
        pc.tensor([1]).requires_grad_()
    x = leaf(1)
    y = x * 2
    with pytest.raises(RuntimeError, match="cannot stop requiring grad"):
        y.requires_grad_(False)
    assert y.is_leaf is False and x.is_leaf and pc.ones(1).is_leaf
    x.requires_grad_(False)
    assert not (x * 2).requires_grad


def test_results_that_are_not_floating_have_no_history():
    x = leaf(1, 2)
    assert not (x > 1).requires_grad
    assert not x.detach().requires_grad
    assert (x * 2).detach().grad_fn is None


def test_a_gradient_flows_through_a_list_of_any_length():
    parts = [pc.tensor([float(i)], requires_grad=i % 3 == 0) for i in range(150)]
    weights = pc.arange(150.0)
    (pc.cat(parts) * weights).sum().backward()
    for i, part in enumerate(parts):
        assert (part.grad is None) == (i % 3 != 0)
        if part.grad is not None:
            assert part.grad.item() == i


def test_nodes():
    x = leaf(1, 2)
    y = x * 2 + 1
    node = y.grad_fn
    assert type(node) is pa.Node
    assert node.name() == "AddBackward"
    ((mul, index), *_) = node.next_functions
    assert (mul.name(), index) == ("MulBackward", 0)
    assert mul.next_functions[0][0].name() == "AccumulateGrad"
    assert pa.grad_fn(x) is None
    assert node == pa.grad_fn(y) and hash(node) == hash(pa.grad_fn(y)) and node != mul
    assert node.sequence > mul.sequence


def test_a_transposed_gradient_arrives_in_the_order_of_its_leaf():
    x = pc.ones(2, 3, requires_grad=True)
    (x.transpose(0, 1) * pc.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.stride() == x.stride()
    np.testing.assert_array_equal(x.grad.numpy(), np.arange(6.0).reshape(3, 2).T)


def test_a_leaf_with_new_data_gets_a_gradient_of_the_new_shape():
    x = leaf(1, 2)
    (x * 1).sum().backward()
    x.grad = None
    x.data = pc.ones(3)
    (x * 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2, 2])


def test_powers_of_zero():
    exponent = pc.tensor([1.0, 2.0, 0.0, 0.5], dtype=pc.float64, requires_grad=True)
    base = pc.zeros(4, dtype=pc.float64, requires_grad=True)
    for powers in (0**exponent, 0.0**exponent, base.detach() ** exponent):
        (first,) = pa.grad(powers.sum(), exponent, create_graph=True)
        assert first.tolist() == [0, 0, 0, 0]
        assert pa.grad(first.sum(), exponent)[0].tolist() == [0, 0, 0, 0]
    negative = pc.tensor([-1.0], dtype=pc.float64, requires_grad=True)
    assert pa.grad((0.0**negative).sum(), negative)[0].tolist() == [-math.inf]
    assert pa.grad((base[:1].detach() ** negative).sum(), negative)[0].tolist() == [-math.inf]


def test_grad_accepts_only_inputs_true():
    x = leaf(1, 2)
    (g,) = pa.grad(
        outputs=(x * 2).sum(),
        inputs=x,
        grad_outputs=None,
        retain_graph=True,
        create_graph=True,
        only_inputs=True,
    )
    assert g.tolist() == [2, 2]
    (g,) = pa.grad((x * 2).sum(), x, None, True, False, True, True)  # PyTorch's order
    assert g.tolist() == [2, 2]
    with pytest.raises(ValueError, match="`only_inputs` must be True; backward"):
        pa.grad((x * 2).sum(), x, only_inputs=False)


def test_the_angle_of_the_origin_has_the_gradient_zero():
    y, x = leaf(0, 0, 1, dtype=pc.float64), leaf(0, 1, 0, dtype=pc.float64)
    result = pa.grad(pc.atan2(y, x).sum(), (y, x), create_graph=True)
    assert [g.tolist() for g in result] == [[0, 1, 0], [0, 0, -1]]
    second = pa.grad((result[0] + 2 * result[1]).sum(), (y, x))
    assert [g.tolist() for g in second] == [[0, -2, 2], [0, -1, 1]]


def test_inputs_and_results_may_come_from_any_iterable():
    parameters = {"x": leaf(1, 2), "w": leaf(3)}
    y = (parameters["x"] * parameters["w"]).sum()
    result = pa.grad(y, parameters.values(), retain_graph=True)
    assert [g.tolist() for g in result] == [[3, 3], [3]]
    result = pa.grad((y * k for k in (1, 2)), (p for p in parameters.values()))
    assert [g.tolist() for g in result] == [[9, 9], [9]]
    with pytest.raises(TypeError, match="`outputs` must be a tensor or a sequence of tensors"):
        pa.grad({"y": y}, parameters)


def test_a_dict_of_inputs_gives_a_dict():
    inputs = {"x": leaf(1, 2), "w": leaf(3), "unused": leaf(4)}
    y = (inputs["x"] * inputs["w"]).sum()
    result = pa.grad(y, inputs, create_graph=True, materialize_grads=True)
    assert {name: g.tolist() for name, g in result.items()} == {
        "x": [3, 3],
        "w": [3],
        "unused": [0],
    }
    assert result["x"].requires_grad
    with pytest.raises(ValueError, match="`inputs` must not be empty"):
        pa.grad(y, {})


def test_inputs_of_the_method_backward():
    x, w = leaf(1, 2), leaf(3)
    (x * w).sum().backward(inputs=(p for p in (x,)))
    assert x.grad.tolist() == [3, 3]
    assert w.grad is None
    with pytest.raises(TypeError, match="backward: `inputs` must be a Tensor or a sequence"):
        (x * w).sum().backward(inputs=3)


def test_a_leaf_that_stopped_requiring_grad_gets_none():
    x, w = leaf(1, 2), leaf(3, 4)
    calls = []
    x.register_post_accumulate_grad_hook(calls.append)
    y = (x * w).sum()
    x.requires_grad_(False)
    y.backward(retain_graph=True)
    assert x.grad is None
    assert w.grad.tolist() == [1, 2]
    assert not calls
    x.requires_grad_(True)
    y.backward()
    assert x.grad.tolist() == [3, 4]
    assert len(calls) == 1

    z = (w * 2).sum()
    w.detach_()
    z.backward()
    assert w.grad.tolist() == [2, 4]  # of the two passes before


def test_the_error_about_inputs_is_that_of_the_function_that_was_called():
    x, w = leaf(1), leaf(2).detach()
    with pytest.raises(RuntimeError, match=r"^backward: input 0 of shape .* does not require grad"):
        (x * 2).backward(inputs=[w])
    with pytest.raises(RuntimeError, match=r"^grad: input 0 of shape .* does not require grad"):
        pa.grad(x * 2, [w])
