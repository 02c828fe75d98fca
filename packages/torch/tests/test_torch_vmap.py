"""`torch.func.vmap` with derivatives, nested, and what it refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import plait
import plait.nn.functional as F
import plait_torch
from plait import nn
from plait.nn import functional_call
from plait_torch._func import grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp
from plait_torch._torch_dispatch import TorchDispatchMode
from plait_torch._vmap import vmap


def close(one: Any, two: Any) -> bool:
    return one.shape == two.shape and plait.allclose(one, two, 1e-4, 1e-5)


def network() -> nn.Module:
    plait.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.GroupNorm(1, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.LayerNorm(27), nn.Linear(27, 8), nn.GELU(), nn.Linear(8, 5),
    )  # fmt: skip


def test_gradients_of_single_samples() -> None:
    net = network()
    params = {name: each.detach() for name, each in net.named_parameters()}
    x, y = plait.randn(6, 1, 8, 8), plait.randint(0, 5, (6,))

    def loss(params: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(functional_call(net, params, (x.unsqueeze(0),)), y.unsqueeze(0))

    found = vmap(grad(loss), (None, 0, 0))(params, x, y)
    for i in range(6):
        one = grad(loss)(params, x[i], y[i])
        assert all(close(found[name][i], one[name]) for name in params)


def test_an_ensemble_is_one_call() -> None:
    models = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(5)]
    params, buffers = stack_module_state(models)
    x = plait.randn(7, 3)
    calls = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))
    assert close(calls(params, buffers, x), plait.stack([model(x) for model in models]))


@pytest.mark.parametrize("shape", [(3,), (1, 3), (5, 3), (8, 3), (9, 3), (2, 4, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_layers_of_an_ensemble_share_their_input(shape: tuple[int, ...], bias: bool) -> None:
    weights, biases, x = plait.randn(5, 4, 3), plait.randn(5, 4), plait.randn(shape)

    def layer(w: Any, b: Any) -> Any:
        return F.linear(x, w, b if bias else None)

    for w in (weights, weights.transpose(1, 2).contiguous().transpose(1, 2), weights[:, ::2]):
        for b in (biases, biases.t().contiguous().t()):
            b = b[:, : w.shape[1]]
            wanted = plait.stack([layer(*each) for each in zip(w, b, strict=True)])
            assert close(vmap(layer)(w, b), wanted)
            assert close(vmap(lambda w, b: layer(w, b).relu() + 1)(w, b), wanted.relu() + 1)


def test_jacobians_and_hessians() -> None:
    x = plait.randn(4)

    def f(x: Any) -> Any:
        return plait.stack([x.sin().sum(), (x * x).prod(), x[1] * x[2].exp()])

    rows = plait.stack([grad(lambda x, i=i: f(x)[i])(x) for i in range(3)])
    assert close(jacrev(f)(x), rows) and close(jacfwd(f)(x), rows)
    assert close(jacrev(f, chunk_size=2)(x), rows)
    second = plait.autograd.functional.hessian(lambda x: f(x).sum(), x)
    assert close(hessian(lambda x: f(x).sum())(x), second)
    both = jacfwd(lambda a, b: a * b.sum(), argnums=(0, 1))(x, x)
    assert close(both[0], plait.eye(4) * x.sum()) and close(both[1], x[:, None].expand(4, 4))
    batch = plait.randn(5, 4)
    assert close(vmap(hessian(lambda x: (x**3).sum()))(batch), plait.diag_embed(6 * batch))


def test_derivatives_outside_inside_and_across() -> None:
    w, x = plait.randn(3), plait.randn(5, 3)
    outside = grad(lambda w: vmap(lambda a: (w * a).sum().sin())(x).sum())(w)
    assert close(outside, grad(lambda w: (x @ w).sin().sum())(w))
    penalty = grad(lambda w: vmap(grad(lambda a: (w * a).sum().sin()))(x).pow(2).sum())(w)
    wanted = grad(lambda w: ((x @ w).cos()[:, None] * w).pow(2).sum())(w)
    assert close(penalty, wanted)
    _, tangent = vmap(lambda a, t: jvp(lambda a: a.exp() * w, (a,), (t,)))(x, plait.ones(5, 3))
    assert close(tangent, x.exp() * w)
    pulled = vmap(lambda a: vjp(plait.sin, a)[1](plait.ones(3))[0])(x)
    assert close(pulled, x.cos())


def test_gradients_of_parameters_by_backward() -> None:
    layer = nn.Linear(3, 2)
    x = plait.randn(4, 3)
    vmap(layer)(x).pow(2).sum().backward()
    found = layer.weight.grad.clone(), layer.bias.grad.clone()
    layer.zero_grad()
    layer(x).pow(2).sum().backward()
    assert type(layer.weight.grad) is plait.Tensor
    assert close(found[0], layer.weight.grad) and close(found[1], layer.bias.grad)


def test_nested_calls_and_dimensions() -> None:
    x, y = plait.randn(2, 3), plait.randn(4, 3)
    assert close(vmap(vmap(plait.dot, (None, 0)), (0, None))(x, y), x @ y.T)
    assert close(vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))(x[0], y[0]),
                 plait.outer(x[0], y[0]))  # fmt: skip
    assert close(vmap(lambda a: a * 2, in_dims=1, out_dims=1)(x), x * 2)
    assert close(vmap(lambda a: (a.sum(), a), out_dims=(0, -1))(x)[1], x.T)
    assert close(vmap(lambda a: a.cumsum(0), chunk_size=2)(y), y.cumsum(1))
    assert close(vmap(lambda a: plait.ones(2))(y), plait.ones(4, 2))


def test_writes_in_place() -> None:
    x = plait.arange(6.0).reshape(3, 2)

    def f(a: Any) -> Any:
        b = a.clone()
        b += 1
        b[0] = a[1]
        b[1:].mul_(2)
        return b

    assert vmap(f)(x).tolist() == [f(each).tolist() for each in x]
    with pytest.raises(RuntimeError, match="cannot be written in place"):
        vmap(lambda a: plait.zeros(2).add_(a))(x)


@pytest.mark.parametrize("factor", [lambda w: w, lambda w: w * 3], ids=["leaf", "product"])
def test_gradients_of_what_samples_share_are_sums(factor: Any) -> None:
    w, x = plait.tensor(2.0, requires_grad=True), plait.tensor([1.0, 2.0, 3.0])

    def total(mapped: Any, y: Any) -> Any:
        inner = mapped(lambda a: mapped(lambda b: (a * y).sin() * b * y, x), x)
        return mapped(lambda a: a * y * y, x).sum() + inner.sum() + 5 * y

    def loop(f: Any, x: Any) -> Any:
        return plait.stack([f(each) for each in x])

    found = plait.autograd.grad(total(lambda f, x: vmap(f)(x), factor(w)), w)
    assert close(found[0], plait.autograd.grad(total(loop, factor(w)), w)[0])

    def penalty(mapped: Any) -> Any:
        return lambda w: mapped(grad(lambda a: (w * a).sum() ** 2), x).pow(2).sum() + w

    assert close(grad(penalty(lambda f, x: vmap(f)(x)))(w), grad(penalty(loop))(w))


def test_another_thread_passes_backward_within_the_call() -> None:
    w, x = plait.tensor(2.0, requires_grad=True), plait.tensor([1.0, 2.0, 3.0])

    def sample(a: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(plait.autograd.grad, (w * a).sin(), w).result()[0]

    assert close(vmap(sample)(x), x * (2 * x).cos())


def test_gradients_of_what_samples_share_through_a_function() -> None:
    class Product(plait.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b, g * a

    w, x = plait.tensor(2.0, requires_grad=True), plait.tensor([1.0, 2.0, 3.0])
    (vmap(lambda a: Product.apply(a, w))(x).sum() + w).backward()
    assert w.grad.item() == 7


def test_second_derivatives_in_all_orders() -> None:
    net, x = network().double(), plait.randn(1, 1, 8, 8, dtype=plait.float64)

    def f(x: Any) -> Any:
        return net(x).pow(2).sum()

    wanted = jacrev(grad(f))(x)
    for outer, inner in ((jacfwd, jacfwd), (jacrev, jacfwd), (jacrev, jacrev), (jacfwd, jacrev)):
        assert plait.allclose(outer(inner(f))(x), wanted, 1e-8, 1e-10)


def test_stacked_models_nested_and_by_backward() -> None:
    plait.manual_seed(0)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.out = nn.Conv2d(1, 2, 3, groups=1), nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            one, two = self.out(self.conv(x).flatten(1)).chunk(2, -1)
            return one * two

    models = [Model() for _ in range(3)]
    params, buffers = stack_module_state(models)
    x = plait.randn(5, 1, 4, 4)

    def call(params: Any, buffers: Any, x: Any) -> Any:
        return functional_call(models[0], (params, buffers), (x.unsqueeze(0),))[0]

    made = vmap(vmap(call, (None, None, 0)), (0, 0, None), out_dims=1)(params, buffers, x)
    wanted = plait.stack([model(x) for model in models], 1)
    assert close(made, wanted)
    made.pow(2).sum().backward()
    wanted.pow(2).sum().backward()
    for name, each in params.items():
        assert close(each.grad, plait.stack([m.get_parameter(name).grad for m in models]))


def test_a_recorded_write_that_views_would_miss_is_an_error() -> None:
    w, x = plait.tensor(2.0, requires_grad=True), plait.ones(3, 2)

    def f(a: Any) -> Any:
        b = a * w
        b[0].mul_(w)
        return b.sum()

    with pytest.raises(NotImplementedError, match=r"vmap: `self` has views, or is a view"):
        vmap(f)(x)
    with plait.no_grad():
        assert vmap(f)(x).tolist() == [6.0] * 3


def test_arguments_and_results_in_containers() -> None:
    x = plait.arange(6.0).reshape(3, 2)

    def f(tree: Any, factor: Any, *, bias: Any) -> Any:
        tree["seen"] = True
        return {"a": tree["x"] * factor, "b": [tree["pair"][0] + bias]}

    tree = {"x": x, "pair": (x, 1.5), "name": "x"}
    made = vmap(f, (0, None), out_dims=0)(tree, 2.0, bias=plait.ones(2))
    assert made["a"].tolist() == (x * 2).tolist() and made["b"][0].tolist() == (x + 1).tolist()
    assert "seen" not in tree
    made = vmap(f, ({"x": 1, "pair": (None, None), "name": None}, None))(
        {**tree, "x": x.T}, 2.0, bias=plait.ones(3, 2)
    )
    assert made["a"].tolist() == (x * 2).tolist() and made["b"][0].shape == (3, 3, 2)
    assert vmap(f).__name__ == "f" and vmap(f).__wrapped__ is f  # type: ignore[attr-defined]


def test_random_numbers() -> None:
    x = plait.zeros(4, 3)
    for call in (lambda a: plait.randn(3) + a, lambda a: F.dropout(a + 1), plait.rand_like):
        with pytest.raises(RuntimeError, match="draws random numbers; say `randomness="):
            vmap(call)(x)
    same = vmap(lambda a: plait.randn(3) + a, randomness="same")(x)
    assert (same == same[0]).all()
    other = vmap(lambda a: plait.randn(3) + a, randomness="different")(x)
    assert len({tuple(row) for row in other.tolist()}) == 4
    for randomness in ("same", "different"):
        dropped = vmap(lambda a: F.dropout(a + 1), randomness=randomness)(plait.zeros(50, 20))
        assert ((dropped == dropped[0]).all().item()) is (randomness == "same")
    with pytest.raises(RuntimeError, match="`randomness` must be"):
        vmap(plait.sin, randomness="never")


@pytest.mark.parametrize(
    "read",
    [
        float, bool, int, lambda a: a.item(), lambda a: a.tolist(), lambda a: a.numpy(),
        lambda a: a.numpy(force=True), np.asarray, memoryview, lambda a: a.__dlpack__(),
    ],
)  # fmt: skip
def test_elements_cannot_be_read(read: Any) -> None:
    for f in (lambda a: read(a.sum()), lambda a: read(a[0].detach())):
        with pytest.raises(RuntimeError, match="reads the elements of a sample in Python"):
            vmap(f)(plait.ones(3, 2))


def test_the_text_of_a_sample_shows_all_of_them() -> None:
    texts: list[str] = []
    vmap(lambda a: texts.append(repr(a + 1)) or a)(plait.zeros(2))
    assert texts[0].startswith("BatchedTensor(level=") and "tensor([1., 1.])" in texts[0]


def test_modes_see_calls_on_all_samples() -> None:
    seen: list[tuple[str, tuple[int, ...]]] = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((str(func), tuple(args[0].shape)))
            return func(*args, **(kwargs or {}))

    x = plait.ones(3, 2)
    with plait_torch.installed(), Log():
        vmap(lambda a: a.sin() * 2)(x)
    assert seen == [("aten.sin.default", (3, 2)), ("aten.mul.Tensor", (3, 2))]


def test_results_outlive_the_call() -> None:
    kept: list[Any] = []
    made = vmap(lambda a: kept.append(a * 2) or a.exp())(plait.zeros(3, 2))
    assert made.tolist() == [[1.0, 1.0]] * 3
    assert (kept[0] + 1).shape == (2,)
    with pytest.raises(RuntimeError, match="reads the elements"):
        kept[0].tolist()


def test_errors() -> None:
    with pytest.raises(ValueError, match="one number of samples is required"):
        vmap(plait.dot)(plait.ones(3, 2), plait.ones(4, 2))
    with pytest.raises(ValueError, match="`out_dims` is None for a result that differs"):
        vmap(lambda a: a, out_dims=None)(plait.ones(3))
    with pytest.raises(ValueError, match="must return tensors, got str"):
        vmap(lambda a: "a")(plait.ones(3))
    with pytest.raises(plait.ShapeError, match=r"matmul|mm|mv|dot"):
        vmap(lambda a: a @ plait.ones(4))(plait.ones(3, 2))
    # nothing is left behind
    assert close(vmap(plait.sin)(plait.ones(3)), plait.ones(3).sin())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(-2), lambda x: x.softmax(-2), lambda x: x.flip(-2), lambda x: x.cumsum(-2),
        lambda x: x.unsqueeze(-3), lambda x: x.select(-2, 0), lambda x: x.transpose(-1, -2),
        lambda x: plait.cat([x, x], -2), lambda x: x.index_select(1, plait.tensor([0])),
        lambda x: x.var(-2), lambda x: x.argmax(-2), lambda x: x.unfold(-2, 2, 1),
        lambda x: plait.diag_embed(x, dim1=-3),
    ],
)  # fmt: skip
def test_the_dimension_of_the_samples_is_none_of_a_sample(function: Any) -> None:
    with pytest.raises(IndexError):
        function(plait.ones(3))
    with pytest.raises(IndexError):
        vmap(function)(plait.ones(3, 3))
    with pytest.raises(IndexError):  # by the rule in Python
        vmap(lambda x: vmap(lambda y: function(x * y))(plait.ones(3, 3)))(plait.ones(3, 3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.tril(), lambda x: plait.linalg.inv(x), lambda x: x.mm(x), lambda x: x.mv(x),
        lambda x: x.bmm(x), lambda x: F.linear(plait.ones(3), x), lambda x: x.view(-1, -1),
        lambda x: F.layer_norm(plait.ones(4), (4,), x),
    ],
)  # fmt: skip
def test_samples_are_no_more_dimensions_for_an_operator(function: Any) -> None:
    for x in (plait.ones(3), plait.ones(1)):
        with pytest.raises((ValueError, RuntimeError)):
            function(x)
        with pytest.raises((ValueError, RuntimeError)):
            vmap(function)(plait.ones(x.shape[0], x.shape[0]))


def test_rows_of_a_sample_are_not_those_of_the_next() -> None:
    tables = plait.arange(24.0).reshape(2, 4, 3)
    calls = vmap(lambda table, i: F.embedding(i, table))
    indices = plait.tensor([[0, 3], [3, 1]])
    assert close(calls(tables, indices), plait.stack([tables[i][indices[i]] for i in range(2)]))
    for wrong in (4, -1):
        with pytest.raises((IndexError, RuntimeError)):
            calls(tables, plait.tensor([[0, wrong], [wrong, 1]]))


def test_memory_of_no_sample_is_not_shown() -> None:
    import copy

    x = plait.arange(6.0).reshape(2, 3)
    assert close(vmap(lambda x: copy.deepcopy(x) * 2)(x), x * 2)
    for reads in (
        lambda x: x.clone().resize_(100), lambda x: x.clone().share_memory_(),
        lambda x: plait.tensor(x.untyped_storage().clone().tolist()),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="no memory of its own"):
            vmap(reads)(x)


def test_an_interrupt_ends_the_call() -> None:
    """Wherever it comes: a trace function sees the places where signals are handled."""
    import sys

    from plait_core import _core

    def at(count: int) -> bool:
        left = count

        def trace(frame: Any, event: str, argument: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            vmap(lambda x: x * 2, chunk_size=2)(plait.ones(3, 3))
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    count = 1
    while at(count):
        assert _core._innermost_vmap() is None, count
        count += 1
    assert count > 20
