"""`torch.func` against PyTorch: what `vmap` serves and refuses, compositions of transforms."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import plait
from plait import func
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw

sys.path.insert(0, str(Path(__file__).parents[2] / "packages/func/tests"))

from write_programs import program

KEYS: list[Any] = [
    lambda i, j: i, lambda i, j: (i, j), lambda i, j: (i, slice(None), j), lambda i, j: (..., i),
    lambda i, j: (None, i, None), lambda i, j: (i, None, j), lambda i, j: (0, i),
    lambda i, j: (i, 0),
    lambda i, j: (i, slice(1, 3), i), lambda i, j: (i, i, i), lambda i, j: (slice(None), j, i),
    lambda i, j: ([0, 1], slice(None), i), lambda i, j: (i, slice(None), [0, 1]),
    lambda i, j: (j % 4, slice(None), j), lambda i, j: (j % 4, None), lambda i, j: -1 - i,
]  # fmt: skip
X = np.arange(360.0).reshape(3, 4, 5, 6)
NUMBER, PAIR = np.array([0, 1, 3]), np.array([[0, 1], [2, 3], [4, 4]])


@pytest.mark.parametrize("number", range(len(KEYS)))
@pytest.mark.parametrize("shared", [False, True], ids=["", "shared"])
def test_indices_of_each_sample(number: int, shared: bool) -> None:
    key = KEYS[number]

    def write(a: Any, i: Any, j: Any) -> Any:
        a = a.clone() + 0 * i
        a[key(i, j)] = a[key(i, j)] * 2 + 1
        a[key(i, j)] += i
        return a

    x, dims = (X[0], (None, 0, 0)) if shared else (X, (0, 0, 0))
    functions = [lambda a, i, j: a[key(i, j)], write]
    if number == 10:  # PyTorch refuses its own selection as the value
        functions.pop()
    for function in functions:
        expected = torch.func.vmap(function, dims)(*map(torch.tensor, (x, NUMBER, PAIR)))
        result = func.vmap(function, dims)(*map(plait.tensor, (x, NUMBER, PAIR)))
        assert np.array_equal(result.numpy(), expected.numpy())


@pytest.mark.parametrize(
    "function",
    [
        lambda t, a: t.sin(a), lambda t, a: a.sum(), lambda t, a: a.max(), lambda t, a: a @ a,
        lambda t, a: t.linalg.svdvals(a), lambda t, a: t.linalg.inv(a),
        lambda t, a: a.softmax(0), lambda t, a: a[a[0].long()], lambda t, a: a.clone().mul_(2),
        lambda t, a: t.nn.functional.cross_entropy(a, a[0].long()),
        lambda t, a: t.nn.functional.layer_norm(a, (3,)),
    ],
)  # fmt: skip
def test_no_samples(function: Any) -> None:
    for dim in (0, -1):
        expected = torch.func.vmap(lambda a: function(torch, a), out_dims=dim)(torch.zeros(0, 3, 3))
        result = func.vmap(lambda a: function(plait, a), out_dims=dim)(plait.zeros(0, 3, 3))
        assert tuple(result.shape) == tuple(expected.shape)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Attempted to insert:UserWarning")
def test_linearize() -> None:
    def f(a: Any, b: Any) -> Any:
        return {"product": a["x"] * b.sin(), "sum": [(a["x"] ** 3).sum()]}

    x, y, s, t = np.random.default_rng(0).normal(size=(4, 5))
    results = []
    for library, linearize in ((torch, torch.func.linearize), (plait, func.linearize)):
        arguments = [library.tensor(each) for each in (x, y, s, t)]
        value, push = linearize(f, {"x": arguments[0]}, arguments[1])
        results.append((value, push({"x": arguments[2]}, arguments[3])))
    for expected, result in zip(*results, strict=True):
        assert np.allclose(result["product"].numpy(), expected["product"].numpy())
        assert np.allclose(result["sum"][0].numpy(), expected["sum"][0].numpy())


def test_both_refuse() -> None:
    w = {torch: torch.ones(3, requires_grad=True), plait: plait.ones(3, requires_grad=True)}
    for library, vmap in ((torch, torch.func.vmap), (plait, func.vmap)):

        def backward(a: Any, library: Any = library) -> Any:
            (a * w[library]).sum().backward()
            return a

        with pytest.raises(RuntimeError, match="backward"):
            vmap(backward)(library.ones(2, 3))
        assert w[library].grad is None
        zeros = library.zeros(5)
        with pytest.raises(RuntimeError, match="vmap"):
            vmap(lambda i, zeros=zeros: zeros.index_fill_(0, i, 1.0))(library.tensor([[0], [1]]))
        for reads in (library.bincount, lambda i, library=library: library.zeros(3)[i > 0]):
            with pytest.raises(RuntimeError):
                vmap(reads)(library.tensor([[0, 1, 2], [0, 0, 1]]))


# ---- what PyTorch serves is served --------------------------------------------------------------

# PyTorch calls these for each sample, and refuses results of different shapes; or it crashes
NOT_COMPARED = {"bincount", "gcd", "histc", "lcm", "repeat_interleave", "unravel_index"}
PREFIXES = ("linalg_", "special_", "fft_")


def _torch_function(name: str) -> Any:
    base = name.partition(".")[0]
    for prefix in PREFIXES:
        base = base.removeprefix(prefix)
    places = (torch, torch.nn.functional, torch.linalg, torch.special, torch.fft, torch.Tensor)
    return next((f for each in places if callable(f := getattr(each, base, None))), None)


def _to_torch(value: Any) -> Any:
    if plait.is_tensor(value):
        if value.dtype is plait.bfloat16:
            return torch.from_numpy(value.float().numpy().copy()).bfloat16()
        return torch.from_numpy(value.numpy().copy())
    if isinstance(value, (list, tuple)):
        return type(value)(map(_to_torch, value))
    if isinstance(value, type(plait.float32)):
        return getattr(torch, value.name, value)
    return value


def _call(function: Any, sample: Any, change: Any, writes: bool) -> Any:
    """Return the call of a sample as a function of its tensors."""

    def filled(values: Any, rest: list[Any]) -> Any:
        return [
            rest.pop(0) if plait.is_tensor(each)
            else type(each)(filled(each, rest)) if isinstance(each, (list, tuple))
            else change(each)
            for each in values
        ]  # fmt: skip

    def call(*tensors: Any) -> Any:
        rest = [x.clone() for x in tensors] if writes else list(tensors)
        args = filled(sample.args, rest)
        return function(*args, **dict(zip(sample.kwargs, filled(sample.kwargs.values(), rest),
                                          strict=True)))  # fmt: skip

    return call


def _tensors(values: Any) -> list[Any]:
    results = []
    for each in values:
        if plait.is_tensor(each):
            results.append(each)
        elif isinstance(each, (list, tuple)):
            results += _tensors(each)
    return results


def _outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return error


OPERATORS = [
    spec
    for spec in specs.all()
    if not spec.unpredictable
    and spec.name.partition(".")[0] not in NOT_COMPARED
    and _torch_function(spec.name) is not None
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_what_pytorch_serves_is_served(spec: Any) -> None:
    """Of each operator with each subset of its tensors mapped; and the shapes are the same."""
    writes = spec.name.partition(".")[0].endswith("_")
    for sample in itertools.islice(draw(spec), 5):
        tensor_sample = sample.mapped(plait.from_numpy)
        tensors = _tensors([*tensor_sample.args, *tensor_sample.kwargs.values()])
        if len(tensors) > 4:
            continue
        ours = _call(operator(spec.name), tensor_sample, lambda x: x, writes)
        theirs = _call(_torch_function(spec.name), tensor_sample, _to_torch, writes)
        one = _outcome(lambda f=theirs, tensor_sample=tensors: f(*map(_to_torch, tensor_sample)))
        own = _outcome(lambda f=ours, tensor_sample=tensors: f(*tensor_sample))
        alike = (
            torch.is_tensor(one) and plait.is_tensor(own) and tuple(own.shape) == tuple(one.shape)
        )
        shape = tuple(one.shape) if alike else (None,)
        for n in range(1, len(tensors) + 1):
            for choice in itertools.combinations(range(len(tensors)), n):
                batched = [plait.stack([x, x, x]) if i in choice else x
                           for i, x in enumerate(tensors)]  # fmt: skip
                dims = tuple(0 if i in choice else None for i in range(len(tensors)))
                expected = _outcome(lambda b=batched, d=dims, f=theirs: torch.func.vmap(f, d)(
                    *map(_to_torch, b)))  # fmt: skip
                result = _outcome(lambda b=batched, d=dims, f=ours: func.vmap(f, d)(*b))
                if isinstance(expected, Exception):
                    continue
                assert not isinstance(result, Exception), (tensor_sample, choice, result)
                # a few of PyTorch's differ from its own function of a sample
                if torch.is_tensor(expected) and tuple(expected.shape) == (3, *shape):
                    assert tuple(result.shape) == tuple(expected.shape), (tensor_sample, choice)


# ---- compositions of transforms -----------------------------------------------------------------


def _composition(library: Any, transforms: Any, r: random.Random) -> Any:
    """Return a function of a vector that a random composition of transforms makes."""
    mixed = library.tensor([[0.5, -1.0, 2.0], [1.0, 0.3, -0.7], [0.2, 0.4, 0.6]],
                           dtype=library.float64)  # fmt: skip

    def base(x: Any) -> Any:
        y = (mixed @ x).sin() * x.exp()
        return y / (1 + y * y) + x[0] * x.flip(0)

    function = base
    for _ in range(r.randint(1, 3)):
        kind = r.randrange(7)

        def made(x: Any, f: Any = function, kind: int = kind) -> Any:
            scalar = lambda x: f(x).sin().sum()  # noqa: E731
            rows = library.stack([x, x * 0.5])
            if kind == 0:
                return transforms.grad(scalar)(x)
            if kind == 1:
                return transforms.jacrev(f)(x).sum(0)[..., :3].reshape(-1)[:3] * x
            if kind == 2:
                return transforms.jacfwd(f)(x).sum(0)[..., :3].reshape(-1)[:3] * x
            if kind == 3:
                return transforms.vmap(f)(rows).sum(0)
            if kind == 4:
                return transforms.hessian(scalar)(x) @ x
            if kind == 5:
                return transforms.jvp(f, (x,), (x * 2,))[1]
            return transforms.vmap(transforms.grad(lambda a: (f(a) * x).sum()))(rows).sum(0)

        function = made
    return function


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_compositions_of_transforms(seed: int) -> None:
    x = np.array([0.3, -0.2, 0.5])
    expected = _composition(torch, torch.func, random.Random(seed))(torch.tensor(x))
    result = _composition(plait, func, random.Random(seed))(plait.tensor(x))
    assert np.allclose(result.numpy(), expected.numpy(), 1e-8, 1e-10)


def test_the_rule_of_a_function() -> None:
    results = []
    for library, transforms in ((torch, torch.func), (plait, func)):

        class Product(library.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(x: Any, y: Any) -> Any:
                return x * y

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                x, y = ctx.saved_tensors
                return Product.apply(g, y), Product.apply(g, x)

            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
                x = x if in_dims[0] is None else x.movedim(in_dims[0], 0)
                y = y if in_dims[1] is None else y.movedim(in_dims[1], 0)
                if in_dims[0] is None:
                    x = x.expand(info.batch_size, *x.shape)
                if in_dims[1] is None:
                    y = y.expand(info.batch_size, *y.shape)
                return Product.apply(x, y) * 3, 0

        x = library.arange(6, dtype=library.float64).reshape(2, 3)
        y = library.tensor([0.5, 2.0, -1.0], dtype=library.float64)

        def total(a: Any, b: Any, product: Any = Product) -> Any:
            return product.apply(a, b).pow(2).sum()

        vmap, grad = transforms.vmap, transforms.grad
        results.append([
            vmap(Product.apply, (0, None))(x, y),
            vmap(Product.apply, (1, None), out_dims=1)(x.T, y),
            vmap(grad(total, (0, 1)), (0, None))(x, y)[0],
            vmap(grad(total, (0, 1)), (0, None))(x, y)[1],
            vmap(transforms.jacrev(total), (0, None))(x, y),
            vmap(grad(lambda a, t=transforms: t.grad(total)(a, a).sum()))(x),
            grad(lambda b: vmap(total, (0, None))(x, b).sum())(y),  # noqa: B023
        ])  # fmt: skip
    for expected, result in zip(*results, strict=True):
        assert np.allclose(result.numpy(), expected.numpy())


# ---- programs of writes -------------------------------------------------------------------------


def _derivatives(library: Any, transforms: Any, p: Any) -> dict[str, Any]:
    """Return what vmap and derivatives make of a program, as functions."""
    a = library.tensor(np.linspace(0.2, 1.3, 18, dtype=np.float32).reshape(3, 2, 3))
    w = library.tensor(np.array([0.5, 1.25, 0.75], np.float32))

    def f(a: Any, w: Any) -> Any:
        return p.run(library, a, w, scalar=False)

    def number(a: Any, w: Any) -> Any:
        return p.run(library, a, w, scalar=True)

    t, vmap = transforms, transforms.vmap
    return {
        "vmap": lambda: [vmap(f, (0, None))(a, w)],
        "vmap(grad)": lambda: vmap(t.grad(number, (0, 1)), (0, None))(a, w),
        "grad(vmap)": lambda: t.grad(
            lambda a, w: vmap(number, (0, None))(a, w).sum(), (0, 1)
        )(a, w),
        "jacrev": lambda: t.jacrev(f, (0, 1))(a[0], w),
        "jacfwd": lambda: t.jacfwd(f, (0, 1))(a[0], w),
        "vmap(jacfwd)": lambda: vmap(t.jacfwd(f, (0, 1)), (0, None))(a, w),
        "hessian": lambda: [t.hessian(number)(a[0], w)],
        "vmap(hessian)": lambda: [vmap(t.hessian(number), (0, None))(a, w)],
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # PyTorch warns of what has no batching rule
def test_derivatives_of_writes() -> None:
    """Where PyTorch has a value, it is plait's, but for results that the second of two backward
    passes needs: a forward derivative is these two passes here.
    """
    served = 0
    for seed in range(20):
        p = program(seed)
        ours, theirs = _derivatives(plait, func, p), _derivatives(torch, torch.func, p)
        for name, call in theirs.items():
            expected, result = _outcome(call), _outcome(ours[name])
            if isinstance(expected, Exception):
                continue
            if isinstance(result, Exception):
                assert "jacfwd" in name and "was overwritten by" in str(result), (p, name, result)
                continue
            served += 1
            for x, y in zip(result, expected, strict=True):
                assert np.allclose(x.detach().numpy(), y.detach().numpy(), 1e-4, 1e-5), (p, name)
    assert served > 60


# ---- random numbers -----------------------------------------------------------------------------

DRAWS: list[Any] = [
    lambda t, a: t.rand(3), lambda t, a: t.randn(2, 3), lambda t, a: t.rand_like(a),
    lambda t, a: t.randn_like(a), lambda t, a: t.randint(0, 1000000, (3,)),
    lambda t, a: t.randint_like(a, 1000000), lambda t, a: t.randperm(40), lambda t, a: t.normal(a),
    lambda t, a: t.normal(a, a + 1), lambda t, a: a.clone().normal_(),
    lambda t, a: a.clone().exponential_(), lambda t, a: a.new_empty(3).uniform_(),
    lambda t, a: t.nn.functional.dropout(a.repeat(20)), lambda t, a: t.poisson(a + 1000),
    lambda t, a: t.bernoulli(a.repeat(20) * 0 + 0.5), lambda t, a: t.multinomial(t.ones(40), 9),
    lambda t, a: t.distributions.Normal(a, a + 1).sample(),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(DRAWS)))
@pytest.mark.parametrize("randomness", ["error", "different", "same"])
def test_random_numbers(number: int, randomness: str) -> None:
    outcomes = []
    for library, vmap in ((torch, torch.func.vmap), (plait, func.vmap)):
        rows = library.ones(4, 3)
        call = vmap(lambda a, t=library: DRAWS[number](t, a), randomness=randomness)
        output = _outcome(lambda call=call, rows=rows: call(rows))
        outcomes.append(output)
    expected, result = outcomes
    if randomness == "error":
        assert isinstance(expected, RuntimeError) and isinstance(result, RuntimeError)
        return
    assert not isinstance(result, Exception), result
    distinct = len({tuple(np.ravel(row)) for row in result.numpy()})
    assert distinct == (1 if randomness == "same" else 4)
    if not isinstance(expected, Exception):  # "same" with a tensor of each sample is refused there
        assert tuple(result.shape) == tuple(expected.shape)
        assert distinct == len({tuple(np.ravel(row)) for row in expected.numpy()})
