"""`vmap` with derivatives, nested, and what it refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F
from plait_func import grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from plait_nn import functional_call


def close(one: Any, two: Any) -> bool:
    return one.shape == two.shape and pc.allclose(one, two, 1e-4, 1e-5, equal_nan=True)


def network() -> nn.Module:
    pc.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.GroupNorm(1, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.LayerNorm(27), nn.Linear(27, 8), nn.GELU(), nn.Linear(8, 5),
    )  # fmt: skip


def test_gradients_of_single_samples() -> None:
    net = network()
    params = {name: each.detach() for name, each in net.named_parameters()}
    x, y = pc.randn(6, 1, 8, 8), pc.randint(0, 5, (6,))

    def loss(params: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(functional_call(net, params, (x.unsqueeze(0),)), y.unsqueeze(0))

    result = vmap(grad(loss), (None, 0, 0))(params, x, y)
    for i in range(6):
        one = grad(loss)(params, x[i], y[i])
        assert all(close(result[name][i], one[name]) for name in params)


def test_an_ensemble_is_one_call() -> None:
    models = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(5)]
    params, buffers = stack_module_state(models)
    x = pc.randn(7, 3)
    calls = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))
    assert close(calls(params, buffers, x), pc.stack([model(x) for model in models]))


@pytest.mark.parametrize("shape", [(3,), (1, 3), (5, 3), (8, 3), (9, 3), (2, 4, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_layers_of_an_ensemble_share_their_input(shape: tuple[int, ...], bias: bool) -> None:
    weights, biases, x = pc.randn(5, 4, 3), pc.randn(5, 4), pc.randn(shape)

    def layer(w: Any, b: Any) -> Any:
        return F.linear(x, w, b if bias else None)

    for w in (weights, weights.transpose(1, 2).contiguous().transpose(1, 2), weights[:, ::2]):
        for b in (biases, biases.t().contiguous().t()):
            b = b[:, : w.shape[1]]
            expected = pc.stack([layer(*each) for each in zip(w, b, strict=True)])
            assert close(vmap(layer)(w, b), expected)
            assert close(vmap(lambda w, b: layer(w, b).relu() + 1)(w, b), expected.relu() + 1)


def test_jacobians_and_hessians() -> None:
    x = pc.randn(4)

    def f(x: Any) -> Any:
        return pc.stack([x.sin().sum(), (x * x).prod(), x[1] * x[2].exp()])

    rows = pc.stack([grad(lambda x, i=i: f(x)[i])(x) for i in range(3)])
    assert close(jacrev(f)(x), rows) and close(jacfwd(f)(x), rows)
    assert close(jacrev(f, chunk_size=2)(x), rows)
    second = pa.functional.hessian(lambda x: f(x).sum(), x)
    assert close(hessian(lambda x: f(x).sum())(x), second)
    both = jacfwd(lambda a, b: a * b.sum(), argnums=(0, 1))(x, x)
    assert close(both[0], pc.eye(4) * x.sum()) and close(both[1], x[:, None].expand(4, 4))
    batch = pc.randn(5, 4)
    assert close(vmap(hessian(lambda x: (x**3).sum()))(batch), pc.diag_embed(6 * batch))


@pytest.mark.parametrize("way", [jacrev, jacfwd, hessian])
def test_jacobians_of_complex_numbers_are_refused(way: Any) -> None:
    with pytest.raises(RuntimeError, match="inputs must be real"):
        way(lambda z: (z * z).real.sum())(pc.tensor([1 + 2j, 3 - 1j]))
    if way is jacrev:
        with pytest.raises(RuntimeError, match="outputs must be real"):
            way(lambda x: pc.complex(x, 2 * x))(pc.ones(2))


def test_derivatives_outside_inside_and_across() -> None:
    w, x = pc.randn(3), pc.randn(5, 3)
    outside = grad(lambda w: vmap(lambda a: (w * a).sum().sin())(x).sum())(w)
    assert close(outside, grad(lambda w: (x @ w).sin().sum())(w))
    penalty = grad(lambda w: vmap(grad(lambda a: (w * a).sum().sin()))(x).pow(2).sum())(w)
    expected = grad(lambda w: ((x @ w).cos()[:, None] * w).pow(2).sum())(w)
    assert close(penalty, expected)
    _, tangent = vmap(lambda a, t: jvp(lambda a: a.exp() * w, (a,), (t,)))(x, pc.ones(5, 3))
    assert close(tangent, x.exp() * w)
    pulled = vmap(lambda a: vjp(pc.sin, a)[1](pc.ones(3))[0])(x)
    assert close(pulled, x.cos())


def test_gradients_of_parameters_by_backward() -> None:
    layer = nn.Linear(3, 2)
    x = pc.randn(4, 3)
    vmap(layer)(x).pow(2).sum().backward()
    results = layer.weight.grad.clone(), layer.bias.grad.clone()
    layer.zero_grad()
    layer(x).pow(2).sum().backward()
    assert type(layer.weight.grad) is pc.Tensor
    assert close(results[0], layer.weight.grad) and close(results[1], layer.bias.grad)


def test_nested_calls_and_dimensions() -> None:
    x, y = pc.randn(2, 3), pc.randn(4, 3)
    assert close(vmap(vmap(pc.dot, (None, 0)), (0, None))(x, y), x @ y.T)
    assert close(vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))(x[0], y[0]),
                 pc.outer(x[0], y[0]))  # fmt: skip
    assert close(vmap(lambda a: a * 2, in_dims=1, out_dims=1)(x), x * 2)
    assert close(vmap(lambda a: (a.sum(), a), out_dims=(0, -1))(x)[1], x.T)
    assert close(vmap(lambda a: a, out_dims=(1,))(x), x.T)
    assert close(vmap(lambda a: a.cumsum(0), chunk_size=2)(y), y.cumsum(1))
    assert close(vmap(lambda a: pc.ones(2))(y), pc.ones(4, 2))


def test_writes_in_place() -> None:
    x = pc.arange(6.0).reshape(3, 2)

    def f(a: Any) -> Any:
        b = a.clone()
        b += 1
        b[0] = a[1]
        b[1:].mul_(2)
        return b

    assert vmap(f)(x).tolist() == [f(each).tolist() for each in x]
    shared = pc.zeros(2)
    for write in (lambda a: shared.add_(a), lambda a: shared[:].copy_(a)):
        with pytest.raises(RuntimeError, match="cannot be written in place"):
            vmap(write)(x)
    with pytest.raises(RuntimeError, match="cannot be written in place"):
        vmap(lambda a: pc.add(a, 1, out=shared))(x)
    assert shared.tolist() == [0, 0]


@pytest.mark.parametrize("factor", [lambda w: w, lambda w: w * 3], ids=["leaf", "product"])
def test_gradients_of_shared_arguments_are_sums(factor: Any) -> None:
    w, x = pc.tensor(2.0, requires_grad=True), pc.tensor([1.0, 2.0, 3.0])

    def total(mapped: Any, y: Any) -> Any:
        inner = mapped(lambda a: mapped(lambda b: (a * y).sin() * b * y, x), x)
        return mapped(lambda a: a * y * y, x).sum() + inner.sum() + 5 * y

    def loop(f: Any, x: Any) -> Any:
        return pc.stack([f(each) for each in x])

    result = pa.grad(total(lambda f, x: vmap(f)(x), factor(w)), w)
    assert close(result[0], pa.grad(total(loop, factor(w)), w)[0])

    def penalty(mapped: Any) -> Any:
        return lambda w: mapped(grad(lambda a: (w * a).sum() ** 2), x).pow(2).sum() + w

    assert close(grad(penalty(lambda f, x: vmap(f)(x)))(w), grad(penalty(loop))(w))


def test_another_thread_passes_backward_within_the_call() -> None:
    w, x = pc.tensor(2.0, requires_grad=True), pc.tensor([1.0, 2.0, 3.0])

    def sample(a: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(pa.grad, (w * a).sin(), w).result()[0]

    assert close(vmap(sample)(x), x * (2 * x).cos())


def test_gradients_of_shared_arguments_through_a_function() -> None:
    class Product(pa.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b, g * a

    w, x = pc.tensor(2.0, requires_grad=True), pc.tensor([1.0, 2.0, 3.0])
    (vmap(lambda a: Product.apply(a, w))(x).sum() + w).backward()
    assert w.grad.item() == 7


def test_second_derivatives_in_all_orders() -> None:
    net, x = network().double(), pc.randn(1, 1, 8, 8, dtype=pc.float64)

    def f(x: Any) -> Any:
        return net(x).pow(2).sum()

    expected = jacrev(grad(f))(x)
    for outer, inner in ((jacfwd, jacfwd), (jacrev, jacfwd), (jacrev, jacrev), (jacfwd, jacrev)):
        assert pc.allclose(outer(inner(f))(x), expected, 1e-8, 1e-10)


def test_stacked_models_nested_and_by_backward() -> None:
    pc.manual_seed(0)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.out = nn.Conv2d(1, 2, 3, groups=1), nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            one, two = self.out(self.conv(x).flatten(1)).chunk(2, -1)
            return one * two

    models = [Model() for _ in range(3)]
    params, buffers = stack_module_state(models)
    x = pc.randn(5, 1, 4, 4)

    def call(params: Any, buffers: Any, x: Any) -> Any:
        return functional_call(models[0], (params, buffers), (x.unsqueeze(0),))[0]

    result = vmap(vmap(call, (None, None, 0)), (0, 0, None), out_dims=1)(params, buffers, x)
    expected = pc.stack([model(x) for model in models], 1)
    assert close(result, expected)
    result.pow(2).sum().backward()
    expected.pow(2).sum().backward()
    for name, each in params.items():
        assert close(each.grad, pc.stack([m.get_parameter(name).grad for m in models]))


def test_a_recorded_write_to_a_view_of_a_result() -> None:
    w, x = pc.tensor(2.0, requires_grad=True), pc.ones(3, 2)

    def f(a: Any) -> Any:
        b = a * w
        b[0].mul_(w)
        return b.sum()

    result = vmap(f)(x)
    assert result.tolist() == [6.0] * 3
    result.sum().backward()
    assert w.grad.item() == 3 * (2 * 2 + 1)
    with pa.no_grad():
        assert vmap(f)(x).tolist() == [6.0] * 3


def test_arguments_and_results_in_containers() -> None:
    x = pc.arange(6.0).reshape(3, 2)

    def f(tree: Any, factor: Any, *, bias: Any) -> Any:
        tree["seen"] = True
        return {"a": tree["x"] * factor, "b": [tree["pair"][0] + bias]}

    tree = {"x": x, "pair": (x, 1.5), "name": "x"}
    result = vmap(f, (0, None), out_dims=0)(tree, 2.0, bias=pc.ones(2))
    assert result["a"].tolist() == (x * 2).tolist() and result["b"][0].tolist() == (x + 1).tolist()
    assert "seen" not in tree
    result = vmap(f, ({"x": 1, "pair": (None, None), "name": None}, None))(
        {**tree, "x": x.T}, 2.0, bias=pc.ones(3, 2)
    )
    assert result["a"].tolist() == (x * 2).tolist() and result["b"][0].shape == (3, 3, 2)
    assert vmap(f).__name__ == "f" and vmap(f).__wrapped__ is f  # type: ignore[attr-defined]


def test_random_numbers() -> None:
    x = pc.zeros(4, 3)
    for call in (lambda a: pc.randn(3) + a, lambda a: F.dropout(a + 1), pc.rand_like):
        with pytest.raises(RuntimeError, match="draws random numbers; pass randomness="):
            vmap(call)(x)
    same = vmap(lambda a: pc.randn(3) + a, randomness="same")(x)
    assert (same == same[0]).all()
    other = vmap(lambda a: pc.randn(3) + a, randomness="different")(x)
    assert len({tuple(row) for row in other.tolist()}) == 4
    for randomness in ("same", "different"):
        dropped = vmap(lambda a: F.dropout(a + 1), randomness=randomness)(pc.zeros(50, 20))
        assert ((dropped == dropped[0]).all().item()) is (randomness == "same")
    with pytest.raises(RuntimeError, match="`randomness` must be"):
        vmap(pc.sin, randomness="never")


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
            vmap(f)(pc.ones(3, 2))


def test_the_text_of_a_sample_shows_all_of_them() -> None:
    texts: list[str] = []
    vmap(lambda a: texts.append(repr(a + 1)) or a)(pc.zeros(2))
    assert texts[0].startswith("BatchedTensor(level=") and "tensor([1., 1.])" in texts[0]


def test_results_outlive_the_call() -> None:
    references: list[Any] = []
    result = vmap(lambda a: references.append(a * 2) or a.exp())(pc.zeros(3, 2))
    assert result.tolist() == [[1.0, 1.0]] * 3
    assert (references[0] + 1).shape == (2,)
    with pytest.raises(RuntimeError, match="reads the elements"):
        references[0].tolist()


def test_errors() -> None:
    with pytest.raises(ValueError, match="one number of samples is required"):
        vmap(pc.dot)(pc.ones(3, 2), pc.ones(4, 2))
    with pytest.raises(ValueError, match="`out_dims` is None for a result that differs"):
        vmap(lambda a: a, out_dims=None)(pc.ones(3))
    with pytest.raises(ValueError, match="`in_dims` must have the structure"):
        vmap(lambda d: d["a"], ({"b": 0},))({"a": pc.ones(3)})
    with pytest.raises(ValueError, match="`out_dims` must have the structure"):
        vmap(lambda a: {"a": a}, out_dims={"b": 0})(pc.ones(3))
    with pytest.raises(ValueError, match="must return tensors, got str"):
        vmap(lambda a: "a")(pc.ones(3))
    with pytest.raises(pc.ShapeError, match=r"matmul|mm|mv|dot"):
        vmap(lambda a: a @ pc.ones(4))(pc.ones(3, 2))
    # nothing is left behind
    assert close(vmap(pc.sin)(pc.ones(3)), pc.ones(3).sin())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(-2), lambda x: x.softmax(-2), lambda x: x.flip(-2), lambda x: x.cumsum(-2),
        lambda x: x.unsqueeze(-3), lambda x: x.select(-2, 0), lambda x: x.transpose(-1, -2),
        lambda x: pc.cat([x, x], -2), lambda x: x.index_select(1, pc.tensor([0])),
        lambda x: x.var(-2), lambda x: x.argmax(-2), lambda x: x.unfold(-2, 2, 1),
        lambda x: pc.diag_embed(x, dim1=-3),
    ],
)  # fmt: skip
def test_the_dimension_of_the_samples_is_none_of_a_sample(function: Any) -> None:
    with pytest.raises(IndexError):
        function(pc.ones(3))
    with pytest.raises(IndexError):
        vmap(function)(pc.ones(3, 3))
    with pytest.raises(IndexError):  # by the rule in Python
        vmap(lambda x: vmap(lambda y: function(x * y))(pc.ones(3, 3)))(pc.ones(3, 3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.tril(), lambda x: pc.linalg.inv(x), lambda x: x.mm(x), lambda x: x.mv(x),
        lambda x: x.bmm(x), lambda x: F.linear(pc.ones(3), x), lambda x: x.view(-1, -1),
        lambda x: F.layer_norm(pc.ones(4), (4,), x),
    ],
)  # fmt: skip
def test_samples_are_no_more_dimensions_for_an_operator(function: Any) -> None:
    for x in (pc.ones(3), pc.ones(1)):
        with pytest.raises((ValueError, RuntimeError)):
            function(x)
        with pytest.raises((ValueError, RuntimeError)):
            vmap(function)(pc.ones(x.shape[0], x.shape[0]))


def test_rows_of_a_sample_are_not_those_of_the_next() -> None:
    tables = pc.arange(24.0).reshape(2, 4, 3)
    calls = vmap(lambda table, i: F.embedding(i, table))
    indices = pc.tensor([[0, 3], [3, 1]])
    assert close(calls(tables, indices), pc.stack([tables[i][indices[i]] for i in range(2)]))
    for wrong in (4, -1):
        with pytest.raises((IndexError, RuntimeError)):
            calls(tables, pc.tensor([[0, wrong], [wrong, 1]]))


def test_a_strict_jvp_refuses_results_that_do_not_depend_on_the_primals() -> None:
    x, w = pc.ones(3), pc.ones(3).requires_grad_()
    assert close(jvp(lambda x: x * w, (x,), (x,), strict=True)[1], w)
    for constant in (lambda x: w * 2, lambda x: (x, pc.ones(2))):
        assert jvp(constant, (x,), (x,))
        with pytest.raises(RuntimeError, match="does not depend on the primals"):
            jvp(constant, (x,), (x,), strict=True)


def test_a_reduction_with_an_empty_list_of_dimensions_keeps_the_samples() -> None:
    x = pc.randn(3, 4, 5)
    for keepdim in (False, True):
        expected = pc.stack([pc.logsumexp(each, (), keepdim) for each in x])
        assert close(vmap(lambda x: pc.logsumexp(x, (), keepdim))(x), expected)  # noqa: B023


def test_memory_of_no_sample_is_not_shown() -> None:
    import copy

    x = pc.arange(6.0).reshape(2, 3)
    assert close(vmap(lambda x: copy.deepcopy(x) * 2)(x), x * 2)
    for reads in (
        lambda x: x.clone().resize_(100), lambda x: x.clone().share_memory_(),
        lambda x: pc.tensor(x.untyped_storage().clone().tolist()),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="has no memory to access"):
            vmap(reads)(x)


def test_an_interrupt_ends_the_call() -> None:
    """Wherever it comes: a trace function sees the places where signals are handled."""
    import sys

    from plait_func import _layer

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
            vmap(lambda x: x * 2, chunk_size=2)(pc.ones(3, 3))
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    count = 1
    while at(count):
        assert _layer.innermost() is None, count
        count += 1
    assert count > 20


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (pc.sin, (0, 3, 3)), (lambda a: a.sum(), (0,)), (lambda a: a.max(), (0,)),
        (lambda a: a @ pc.ones(3, 2), (0, 3, 2)), (lambda a: pc.ones(2), (0, 2)),
        (lambda a: F.conv1d(a, pc.ones(2, 3, 1)), (0, 2, 3)),
        (lambda a: F.conv1d(pc.ones(1, 3, 4), a[..., None]), (0, 1, 3, 4)),
        (lambda a: F.cross_entropy(a, a.argmax(1)), (0,)),
        (lambda a: F.batch_norm(a, None, None, training=True), (0, 3, 3)),
        (lambda a: pc.linalg.cholesky(a), (0, 3, 3)), (pc.linalg.inv, (0, 3, 3)),
        (lambda a: pc.linalg.solve(a, a[0]), (0, 3)), (lambda a: a[a[0, 0].long()], (0, 3)),
        (lambda a: F.embedding(a.long(), a), (0, 3, 3, 3)), (lambda a: pc.std(a, 0), (0, 3)),
        (lambda a: a.clone().mul_(2).index_fill_(0, a[0].long(), 1.0), (0, 3, 3)),
        (lambda a: F.dropout(a) + pc.randn(3), (0, 3, 3)),
    ],
)  # fmt: skip
def test_no_samples(function: Any, shape: tuple[int, ...]) -> None:
    x = pc.zeros(0, 3, 3)
    for randomness in ("different", "same"):
        assert vmap(function, randomness=randomness)(x).shape == shape
    assert vmap(function, out_dims=-1, randomness="same")(x).shape == (*shape[1:], 0)
    assert vmap(vmap(function, randomness="same"), randomness="same")(x[None]).shape == (1, *shape)


def test_no_samples_have_derivatives_and_errors() -> None:
    x, w = pc.zeros(0, 3), pc.ones(3, requires_grad=True)
    assert vmap(grad(lambda a: (a.sin() * w).sum()))(x).shape == (0, 3)
    vmap(lambda a: (a * w).sum())(x).sum().backward()
    assert w.grad.tolist() == [0, 0, 0]
    with pytest.raises(IndexError):
        vmap(lambda a: a.sum(-2))(x)
    for function in (pc.nonzero, pc.bincount, lambda a: a[a > 0]):
        with pytest.raises(NotImplementedError, match=r"depends on the values of|0 samples"):
            vmap(function)(x.long())


NUMBER, PAIR = pc.tensor([0, 1, 3]), pc.tensor([[0, 1], [2, 3], [4, 4]])
KEYS: list[Any] = [
    lambda i, j: i, lambda i, j: -1 - i, lambda i, j: (i, j), lambda i, j: (slice(None), i),
    lambda i, j: (..., i), lambda i, j: (None, i), lambda i, j: (i, None), lambda i, j: (0, i),
    lambda i, j: (i, 0), lambda i, j: (i, slice(1, 3)), lambda i, j: (i, slice(None), i),
    lambda i, j: (i, i, i), lambda i, j: (slice(None), j, i), lambda i, j: ([0, 1], slice(None), i),
    lambda i, j: (0, slice(None), j), lambda i, j: (j % 4, slice(None), j), lambda i, j: (j % 4, 0),
    lambda i, j: ([1, 0], j), lambda i, j: (slice(1, None), j), lambda i, j: (i[None], j),
    lambda i, j: i > 1, lambda i, j: [1, 0], lambda i, j: (..., j),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(KEYS)))
@pytest.mark.parametrize("shared", [False, True], ids=["", "shared"])
def test_indices_that_differ_between_samples(number: int, shared: bool) -> None:
    key, x = KEYS[number], pc.arange(360.0).reshape(3, 4, 5, 6)
    x = x[0] if shared else x

    def write(a: Any, i: Any, j: Any) -> Any:
        a = a.clone() + 0 * i
        at = key(i, j)
        a[at] = a[at] * 10 + 1
        a[at] = i * 0.5
        a[at] += 2
        return a

    def number_written(a: Any, i: Any, j: Any) -> Any:
        a = a.clone() + 0 * i
        a[key(i, j)] = 7.0
        return a

    functions = [write, number_written, lambda a, i, j: a[key(i, j)]]
    if number == 20:  # a mask: a number can be written there, but nothing read
        functions = [number_written]
        with pytest.raises(RuntimeError, match="use where"):
            vmap(lambda i: x[i > 1])(NUMBER)
    for f in functions:
        expected = pc.stack([f(x if shared else x[k], NUMBER[k], PAIR[k]) for k in range(3)])
        assert close(vmap(f, (None if shared else 0, 0, 0))(x, NUMBER, PAIR), expected)


def test_an_index_of_a_sample_selects_as_an_array() -> None:
    """As in PyTorch, where an int that all samples share leaves the others in their places."""
    x = pc.arange(360.0).reshape(3, 4, 5, 6)
    result = vmap(lambda a, i: a[i, :, [0, 1]])(x, NUMBER)
    assert close(result, pc.stack([x[k, NUMBER[k], :, :2].T for k in range(3)]))
    g = vmap(grad(lambda a, i, j: (a[i, :, j] ** 2).sum()))(x, NUMBER, PAIR)
    for k in range(3):
        assert close(g[k], grad(lambda a, k=k: (a[NUMBER[k], :, PAIR[k]] ** 2).sum())(x[k]))
    with pytest.raises(IndexError, match="out of range"):
        vmap(lambda a, i: a[i + 10])(x, NUMBER)
    zeros = pc.zeros(5)
    with pytest.raises(RuntimeError, match="index_put_: a tensor that all samples"):
        vmap(lambda i: zeros.__setitem__(i, 1.0))(NUMBER)


def test_results_of_different_shapes_are_an_error() -> None:
    x = pc.tensor([[1.0, -1.0], [1.0, 1.0]])
    with pytest.raises(RuntimeError, match=r"has shape \(1, 1\) for one sample and \(2, 1\) for"):
        vmap(lambda a: a[a > 0])(x)


def test_backward_within_a_call_is_an_error_and_changes_nothing() -> None:
    w, x = pc.ones(3, requires_grad=True), pc.ones(2, 3)

    def own(a: Any) -> Any:
        (a * w).sum().backward()
        return a

    def function(a: Any) -> Any:
        pa.backward((a * w).sum(), inputs=[w])
        return a

    for f in (own, function):
        with pytest.raises(RuntimeError, match=r"backward: .* vmap .* autograd.grad there"):
            vmap(f)(x)
        assert w.grad is None
    assert vmap(lambda a: pa.grad((a * w).sum(), w)[0])(x).tolist() == x.tolist()
    own(x)
    assert w.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda i: F.one_hot(i), lambda i: pc.full((2,), i[0]),
        lambda i: pc.add(i, i, alpha=i[0]), lambda i: pc.arange(i[0]),
        lambda i: pc.addcmul(i, i, i, value=i[0]), lambda i: i.narrow(0, i[0], 1),
    ],
)  # fmt: skip
def test_numbers_are_not_read_from_memory_that_has_none(call: Any) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"this tensor stands for|Tensor of shape"):
        vmap(call)(pc.tensor([[1, 2], [1, 1]]))


def test_a_number_of_each_sample_fills_it() -> None:
    x, f = pc.zeros(2, 3), pc.tensor([1.0, 2.0])
    assert vmap(lambda a, f: a.fill_(f))(x.clone(), f).tolist() == [[1.0] * 3, [2.0] * 3]
    assert vmap(lambda f: pc.linspace(0.0, f, 3))(f).tolist() == [[0, 0.5, 1], [0, 1, 2]]


# ---- programs of writes, from a seed -------------------------------------------------------------


def _write(name: str, a: Any, b: Any, r: float) -> Any:
    """Return the tensor after one operator that writes it, or that writes another one by out=."""
    if name.endswith("_"):
        getattr(a, name)(b if r < 0.7 else pc.tensor(0.7))
    elif name == "set":
        a[int(2 * r)] = b if r < 0.5 else 0.5
    elif name == "part":
        a[..., 1:] *= 2 + r
    elif name == "view":
        a.unsqueeze(0).transpose(0, 1)[1:].mul_(r)
    elif name == "index":
        a.index_add_(0, pc.tensor([0, 0]), a[:2] * 1.0)
    elif name == "scatter":
        a.scatter_(0, pc.zeros(a.shape, dtype=pc.int64), a * 2.0)
    elif name == "mask":
        a.masked_fill_(a > 0.8, b.sum() if r < 0.5 else 0.3)
    elif name == "clamp":
        a.clamp_(0.3, 0.9) if r < 0.5 else a.clamp_(min=b)
    elif name == "turn":
        return a.swapaxes_(0, -1).swapaxes_(0, -1)
    else:
        result = pc.empty_like(a)
        getattr(pc, name)(a, b, out=result)
        return result
    return a


NAMES = [
    *("add_", "sub_", "mul_", "div_", "copy_", "pow_", "atan2_", "eq_", "xlogy_", "logical_or_"),
    *("set", "part", "view", "index", "scatter", "mask", "clamp", "turn", "add", "maximum", "pow"),
]


@pytest.mark.parametrize("seed", range(60))
def test_programs_of_writes_as_for_each_sample(seed: int) -> None:
    r = np.random.default_rng(seed)
    shape = [(4,), (2, 3), (3, 3)][r.integers(3)]
    other = [shape, shape[-1:], (), (1,) * len(shape)][r.integers(4)]
    x = pc.from_numpy(r.uniform(0.2, 2, (3, *shape)))
    y = pc.from_numpy(r.uniform(0.2, 2, (3, *other)))
    names = [(NAMES[r.integers(len(NAMES))], float(r.random())) for _ in range(r.integers(1, 5))]
    copied = bool(r.integers(2))

    def program(a: Any, b: Any) -> Any:
        a = a.clone() if copied else a
        for name, each in names:
            a = _write(name, a, b if name != "set" or len(other) < len(shape) else b[0], each)
        return a

    own = x.clone()
    expected = pc.stack([program(own[k], y[k]) for k in range(3)])
    clone = x.clone()
    assert close(vmap(program)(clone, y), expected), names
    assert close(clone, own), names


@pytest.mark.parametrize("inner", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("outer", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (4, 3, 2)])
def test_gradients_of_nested_systems(inner: Any, outer: Any, shape: tuple[int, ...]) -> None:
    """Derivatives inside, between and outside of two batches, as those of each sample."""

    def loss(a: Any, b: Any) -> Any:
        return (pc.linalg.solve(a, b) ** 3).sum()

    generator = pc.Generator().manual_seed(0)

    def batch(position: int, own: tuple[int, ...]) -> Any:
        sizes = [n for n, dims in ((2, outer), (5, inner)) if dims[position] == 0]
        return pc.randn(*sizes, *own, dtype=pc.float64, generator=generator)

    a, b = batch(0, (3, 3)) + 4 * pc.eye(3), batch(1, shape)

    def part(x: Any, position: int, i: int, j: int) -> Any:
        x = x[i] if outer[position] == 0 else x
        return x[j] if inner[position] == 0 else x

    inside = vmap(vmap(grad(loss), inner), outer)(a, b)
    for i in range(2):
        for j in range(5):
            want = grad(loss)(part(a, 0, i, j), part(b, 1, i, j))
            np.testing.assert_allclose(inside[i, j].numpy(), want.numpy(), atol=1e-9)

    def total(a: Any, b: Any) -> Any:
        return vmap(loss, inner)(a, b).sum()

    between = vmap(grad(total), outer)(a, b)
    outside = grad(lambda a, b: vmap(total, outer)(a, b).sum())(a, b)
    want = inside if inner[0] == 0 else inside.sum(1)
    np.testing.assert_allclose(between.numpy(), want.numpy(), atol=1e-9)
    want = want if outer[0] == 0 else want.sum(0)
    np.testing.assert_allclose(outside.numpy(), want.numpy(), atol=1e-9)
