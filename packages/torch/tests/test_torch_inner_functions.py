"""Inner functions of PyTorch's modules, of which libraries make optimizers and derivatives."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest


def test_tensors_of_a_jacobian(torch: Any) -> None:
    """A Jacobian of given results, by one product for each row of a basis, as libraries do it."""
    functional = torch.autograd.functional
    a, b = torch.randn(2, requires_grad=True), torch.randn(3, dtype=torch.float64)
    many, (x,) = functional._as_tuple(a, "inputs", "test")
    outputs = (x * x.sum(), (x.double() @ torch.ones(2, 3).double()) * b)
    basis = functional._construct_standard_basis_for(outputs, (2, 3))
    assert [each.dtype for each in basis] == [torch.float32, torch.float64]
    assert torch.equal(torch.cat([each.double() for each in basis], 1), torch.eye(5).double())

    def row(*vectors: Any) -> Any:
        return torch.autograd.grad(outputs, x, vectors)[0]

    rows = torch._vmap_internals._vmap(row)(*basis)
    first, second = rows.split((2, 3))
    expected = functional.jacobian(lambda x: (x * x.sum(), x.double().sum() * b), a)
    assert torch.allclose(first, expected[0]) and torch.allclose(second, expected[1].float())
    parts = functional._grad_postprocess(((first * x,), (second * 1,)), create_graph=False)
    assert not parts[0][0].requires_grad
    assert functional._tuple_postprocess(parts, (True, many)) == (parts[0][0], parts[1][0])
    assert functional._tuple_postprocess(parts[0], False) is parts[0][0]
    fresh = functional._grad_preprocess((x, b), True, True)
    assert fresh[0].grad_fn is not None and fresh[1].is_leaf and fresh[1].requires_grad
    with pytest.raises(TypeError, match=r"The inputs given to test .* value at index 1 .*'int'"):
        functional._as_tuple((x, 3), "inputs", "test")


def test_a_jacobian_keeps_the_class_of_tensors(torch: Any) -> None:
    class Named(torch.Tensor):
        pass

    kinds = []

    def square(x: Any) -> Any:
        kinds.append(type(x))
        return (x * x).as_subclass(torch.Tensor)

    x = torch.ones(2).as_subclass(Named)
    for create_graph in (False, True):
        torch.autograd.functional.jacobian(square, x.requires_grad_(), create_graph)
    assert kinds == [Named, Named]


def test_vmap_with_results_that_are_none(torch: Any) -> None:
    vmap, x = torch._vmap_internals._vmap, torch.ones(2, 3)
    doubled, nothing = vmap(lambda a: (a * 2, None), allow_none_pass_through=True)(x)
    assert doubled.tolist() == [[2.0] * 3] * 2 and nothing is None
    with pytest.raises(ValueError, match="must return tensors, got NoneType"):
        vmap(lambda a: (a * 2, None))(x)


def test_a_line_search_tries_the_lengths_of_pytorch(torch: Any) -> None:
    """The lengths, losses and gradients are those that PyTorch 2.13 has."""
    matrix, x = torch.tensor([[3.0, 1.0], [1.0, 2.0]]), torch.tensor([1.0, -2.0])
    lengths: list[float] = []

    def function(x: Any, t: Any, d: Any) -> Any:
        lengths.append(round(float(t), 5))
        y = x + t * d
        return float(0.5 * y @ matrix @ y + (y**4).sum()), matrix @ y + 4 * y**3

    search, interpolate = torch.optim.lbfgs._strong_wolfe, torch.optim.lbfgs._cubic_interpolate
    f, g = function(x, 0.0, x)
    for first, expected, loss, gradient in (
        (1.0, [1.0, 0.36914, 0.15511, 0.07522], 1.6910, [3.4758, 2.9032]),
        (1e-3, [0.001, 0.00551], 14.4913, [4.7888, -26.2561]),
        (5.0, [5.0, 1.70432, 0.60485, 0.23598, 0.10736], 13.8114, [3.5447, 25.6923]),
    ):
        lengths.clear()
        result = search(function, x, first, -g, f, g, -(g @ g))
        assert lengths == expected and result[3] == len(expected)
        assert result[0] == pytest.approx(loss, abs=1e-4)
        assert result[1].tolist() == pytest.approx(gradient, abs=1e-3)
    slopes = torch.tensor(-1.0), torch.tensor(3.0)
    bounded = interpolate(0.0, 1.0, slopes[0], 1.0, 2.0, slopes[1], bounds=(0.0, 0.2))
    assert float(bounded) == pytest.approx(0.2)
    assert float(interpolate(0.0, 1.0, slopes[0], 1.0, 2.0, slopes[1])) == pytest.approx(0.25)


def test_calls_before_there_is_an_agent(torch: Any) -> None:
    function = torch.distributed.rpc.api._require_initialized(lambda: 1)
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        function()
    assert torch._C._distributed_rpc._is_current_rpc_agent_set() is False


def test_an_operator_of_kernels_has_the_derivative_of_its_parts(torch: Any) -> None:
    @torch.library.triton_op("test_inner::square", mutates_args={})
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    x = torch.full((2,), 3.0, requires_grad=True)
    assert torch.ops.test_inner.square(x).tolist() == [9.0, 9.0]
    square(x).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    library = torch.library.Library("test_inner", "FRAGMENT")
    library.impl("square", lambda x: x * 5, "CPU")
    assert square(x).tolist() == [15.0, 15.0]
    square.register_autograd(lambda ctx, g: g * 7)
    x.grad = None
    square(x).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    with torch._subclasses.fake_tensor.unset_fake_temporarily() as mode:
        assert mode is None


def test_private_modules_of_plait_stand_for_nothing_of_pytorch(torch: Any) -> None:
    """`torch._unique` is a function of PyTorch's; a file of plait has the same name."""
    for module, name in (
        (torch, "_unique"), (torch.cuda.memory, "_memory"), (torch._vmap_internals, "_vmap"),
        (torch.nn.utils.stateless, "_functional_call"),
    ):  # fmt: skip
        assert not isinstance(getattr(module, name, None), ModuleType)


def test_a_module_with_other_tensors_in_a_block(torch: Any) -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(2, 1))
    weight = torch.tensor([[2.0, 3.0]], requires_grad=True)
    before = layer[0].weight
    with torch.nn.utils.stateless._reparametrize_module(layer, {"0.weight": weight}):
        assert layer[0].weight is weight
        layer(torch.ones(2)).sum().backward()
    assert layer[0].weight is before and weight.grad.tolist() == [[1.0, 1.0]]
    with pytest.raises(RuntimeError, match=r"missing: \['0\.bias'\]"):  # noqa: SIM117
        with torch.nn.utils.stateless._reparametrize_module(
            layer, {"0.weight": weight}, strict=True
        ):
            pass
