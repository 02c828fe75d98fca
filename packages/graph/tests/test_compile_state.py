"""What changes between calls of a compiled function: parameters, modules, optimizers, modes."""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_autograd import checkpoint, no_grad
from plait_graph import compile

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same, bits

T = pc.tensor


def frozen(function: Callable[..., Any]) -> Any:
    return compile(function, frozen=True)


def linear() -> Any:
    return nn.Linear(2, 2)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "written": lambda m: m.weight.data.fill_(3),
    "data": lambda m: setattr(m.weight, "data", pc.full((2, 2), 5.0)),
    "data of another layout": lambda m: setattr(m.weight, "data", T([[1.0, 2.0], [3.0, 4.0]]).T),
    "data of another shape": lambda m: setattr(m.weight, "data", pc.full((2, 2), 5.0)[:1]),
    "parameter": lambda m: setattr(m, "weight", nn.Parameter(pc.full((2, 2), 7.0))),
    "loaded": lambda m: m.load_state_dict({"weight": pc.ones(2, 2), "bias": pc.ones(2)}),
    "assigned": lambda m: m.load_state_dict(
        {"weight": pc.ones(2, 2), "bias": pc.ones(2)}, assign=True
    ),
    "no bias": lambda m: setattr(m, "bias", None),
    "hook": lambda m: m.register_forward_hook(lambda m, args, out: out * 0 + 1),
    "weight frozen": lambda m: m.weight.requires_grad_(False),
    "bias frozen": lambda m: m.bias.requires_grad_(False),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("differentiates", [False, True])
def test_parameters(change: str, differentiates: bool) -> None:
    module = linear()
    compiled = frozen(lambda x: module(x) * 2)
    x = pc.randn(3, 2)
    for _ in range(3):
        compiled(x)
    CHANGES[change](module)
    if change == "data of another shape":
        module.bias.data = module.bias.data[:1]
    for _ in range(3):
        if not differentiates:
            with no_grad():
                assert_same(compiled(x), module(x) * 2)
            continue
        for p in module.parameters():
            p.grad = None
        compiled(x).sum().backward()
        got = [None if p.grad is None else bits(p.grad) for p in module.parameters()]
        for p in module.parameters():
            p.grad = None
        (module(x) * 2).sum().backward()
        assert got == [None if p.grad is None else bits(p.grad) for p in module.parameters()]


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_dtype_of_parameters(dtype: str) -> None:
    module = nn.Embedding(4, 2)
    compiled = frozen(module)
    x = T([1, 2])
    for _ in range(3):
        compiled(x)
    module.to(getattr(pc, dtype))
    for _ in range(3):
        assert_same(compiled(x), module(x))


def test_unfrozen_parameter() -> None:
    module = linear()
    module.weight.requires_grad_(False)
    compiled = frozen(lambda x: module(x).sum())
    for _ in range(3):
        compiled(pc.ones(1, 2)).backward()
    module.weight.requires_grad_(True)
    for k in range(3):
        compiled(pc.ones(1, 2)).backward()
        assert_same(module.weight.grad, pc.full((2, 2), k + 1.0))


def test_submodules() -> None:
    module = nn.Sequential(linear())
    compiled = frozen(lambda x: module(x))
    x = pc.randn(1, 2)
    for change in (lambda: module.__setitem__(0, linear()), lambda: module.append(nn.ReLU())):
        for _ in range(3):
            assert_same(compiled(x), module(x))
        change()
    for _ in range(3):
        assert_same(compiled(x), module(x))


class Trainer:
    def __init__(self, model: Any) -> None:
        self.model = model

    def step(self, x: Any) -> Any:
        return self.model(x)


def with_default(model: Any) -> Any:
    def function(x: Any, model: Any = model) -> Any:
        return model(x)

    return function


def with_inner_function(model: Any) -> Any:
    def inner(x: Any) -> Any:
        return model(x)

    return lambda x: inner(x)


WAYS: dict[str, Callable[[Any], Any]] = {
    "module": lambda m: m,
    "closure": lambda m: lambda x: m(x),
    "object": lambda m: Trainer(m).step,
    "list": lambda m: (lambda all: lambda x: all[0](x))([m]),
    "dict": lambda m: (lambda d: lambda x: d["model"](x))({"model": m}),
    "partial": lambda m: functools.partial(lambda m, x: m(x), m),
    "default": with_default,
    "inner function": with_inner_function,
}


@pytest.mark.parametrize("way", WAYS)
def test_modes_of_modules(way: str) -> None:
    module = nn.Sequential(nn.Dropout(0.5))
    compiled = frozen(WAYS[way](module))
    x = pc.ones(64)
    for _ in range(3):
        assert (compiled(x) == 0).any()
    module.eval()
    for _ in range(3):
        assert_same(compiled(x), x)
    module.train()
    assert (compiled(x) == 0).any()
    module[0].p = 0.0
    assert_same(compiled(x), x)


def test_modes_of_modules_that_are_arguments() -> None:
    module = nn.Sequential(nn.Dropout(0.5))
    compiled = frozen(lambda m, x: m(x))
    x = pc.ones(64)
    for _ in range(3):
        assert (compiled(module, x) == 0).any()
    module.eval()
    for _ in range(3):
        assert_same(compiled(module, x), x)


def test_captured_variables() -> None:
    w, scale = T([1.0]), 2.0

    def function(x: Any) -> Any:
        return x * w * scale

    compiled = frozen(function)
    for _ in range(3):
        compiled(T([2.0]))
    w = T([7.0])
    assert_same(compiled(T([2.0])), T([28.0]))
    scale = 3.0
    assert_same(compiled(T([2.0])), T([42.0]))


def test_a_buffer_that_the_function_replaces() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("last", pc.zeros(2))

        def forward(self, x: Any) -> Any:
            y = self.last + x
            self.last = x * 1
            return y

    eager, module = Last(), Last()
    compiled = frozen(module)
    try:
        for k in range(8):  # the first calls make equal values
            x = T([1.0, max(1.0, k - 3.0)])
            assert_same(compiled(x), eager(x))
    except RuntimeError as error:
        assert "cannot be frozen" in str(error)


def trained(make: Callable[[Any], Any], change: Callable[[Any], Any], *, is_compiled: bool) -> Any:
    """Return the losses of nine steps; the change comes behind the fourth."""
    w = nn.Parameter(T([1.0, 2.0]))
    opt = make([w])

    def step() -> Any:
        opt.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        opt.step()
        return loss

    function = frozen(step) if is_compiled else step
    losses = []
    for k in range(9):
        if k == 4:
            change(opt)
        losses.append(function().item())
    return losses


def group(**options: Any) -> Callable[[Any], Any]:
    return lambda opt: opt.param_groups[0].update(options)


def load(opt: Any) -> None:
    state = opt.state_dict()
    state["param_groups"][0]["lr"] = 0.01
    state["state"][0]["exp_avg"] = T([5.0, 5.0])
    state["state"][0]["step"] = 50
    opt.load_state_dict(state)


def replace_state(opt: Any) -> None:
    for state in opt.state.values():
        state["exp_avg"] = T([5.0, 5.0])


OPTIMIZER_CHANGES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "lr": (lambda p: optim.SGD(p, lr=0.1), group(lr=0.01)),
    "lr that is an integer": (lambda p: optim.SGD(p, lr=1), group(lr=0.1)),
    "weight_decay from 0": (
        lambda p: optim.SGD(p, lr=0.1, weight_decay=0),
        group(weight_decay=0.5),
    ),
    "momentum": (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), group(momentum=0.1)),
    "nesterov": (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), group(nesterov=True)),
    "maximize": (lambda p: optim.Adam(p, lr=0.1), group(maximize=True)),
    "betas": (lambda p: optim.Adam(p, lr=0.1), group(betas=(0.5, 0.9))),
    "eps equal to lr": (lambda p: optim.Adam(p, lr=0.1, eps=0.1), group(eps=0.2)),
    "loaded": (lambda p: optim.Adam(p, lr=0.1), load),
    "state cleared": (lambda p: optim.Adam(p, lr=0.1), lambda opt: opt.state.clear()),
    "state replaced": (lambda p: optim.Adam(p, lr=0.1), replace_state),
}


@pytest.mark.parametrize("change", OPTIMIZER_CHANGES)
def test_optimizers(change: str) -> None:
    eager = trained(*OPTIMIZER_CHANGES[change], is_compiled=False)
    assert trained(*OPTIMIZER_CHANGES[change], is_compiled=True) == eager


@pytest.mark.parametrize("to_none", [False, True])
def test_accumulation_by_the_caller(to_none: bool) -> None:
    def losses(*, is_compiled: bool) -> Any:
        w = nn.Parameter(T([1.0]))
        opt = optim.Adam([w], lr=0.1)

        def part(x: Any) -> Any:
            loss = (w * w * x).sum()
            loss.backward()
            return loss

        function = frozen(part) if is_compiled else part
        seen = []
        for k in range(15):
            seen.append(function(T([1.0 + k])).item())
            if k % 3 == 2:
                opt.step()
                opt.zero_grad(set_to_none=to_none)
        return seen

    assert losses(is_compiled=True) == losses(is_compiled=False)


def test_parameters_without_gradients_at_times() -> None:
    def losses(*, is_compiled: bool) -> Any:
        a, b = nn.Parameter(T([1.0])), nn.Parameter(T([1.0]))
        opt = optim.Adam([a, b], lr=0.1)

        def step(x: Any, uses_b: bool) -> Any:
            opt.zero_grad()
            loss = (a * x).sum() + ((b * x).sum() if uses_b else 0)
            loss.backward()
            opt.step()
            return loss

        function = frozen(step) if is_compiled else step
        seen = [function(T([1.0 + k]), k % 2 == 0).item() for k in range(12)]
        return seen, [state["step"] for state in opt.state_dict()["state"].values()]

    assert losses(is_compiled=True) == losses(is_compiled=False)


MODULE_WITH_OWN_VALUES = """
s = 2.0
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.numbers = [2.0]
        self.table = {"a": 2.0}
        self.plain = pc.ones(3)
        self.hidden = [nn.Dropout(0.5)]
    def forward(self, x):
        x = x * s * self.numbers[0] * self.table["a"] * self.plain
        return self.hidden[0](x)
model = Model()
f = model
"""
TEXTS: dict[str, str] = {
    "global": "def f(x): return model(x)",
    "global in a comprehension": "def f(x): return [model(x) for _ in range(1)][0]",
    "global in a lambda": "def f(x): return (lambda y: model(y))(x)",
    "global in an inner function": "def f(x):\n def g(y): return model(y)\n return g(x)",
    "global behind two functions": (
        "def h(x): return model(x)\ndef g(x): return h(x)\ndef f(x): return g(x)"
    ),
    "global behind eight functions": (
        "def g0(x): return model(x)\n"
        + "\n".join(f"def g{i}(x): return g{i - 1}(x)" for i in range(1, 8))
        + "\ndef f(x): return g7(x)"
    ),
    "method of an object": (
        "class A:\n def go(self, x): return self.m(x)\n"
        "a = A(); a.m = model\ndef f(x): return a.go(x)"
    ),
    "property": (
        "class A:\n @property\n def m(self): return self._m\n"
        "a = A(); a._m = model\ndef f(x): return a.m(x)"
    ),
    "getattr": "class A: pass\na = A(); a.m = model\ndef f(x): return getattr(a, 'm')(x)",
    "slots": "class A: __slots__ = ('m',)\na = A(); a.m = model\ndef f(x): return a.m(x)",
    "object that is called": (
        "class A:\n def __call__(self, x): return self.m(x)\n"
        "a = A(); a.m = model\ndef f(x): return a(x)"
    ),
    "class attribute": "class A: m = model\ndef f(x): return A.m(x)",
    "class method": "class A:\n m = model\n @classmethod\n def f(c, x): return c.m(x)\nf = A.f",
    "another file": (
        "other = types.ModuleType('other'); other.m = model\ndef f(x): return other.m(x)"
    ),
    "namespace": "a = types.SimpleNamespace(m=model)\ndef f(x): return a.m(x)",
    "deque": "a = collections.deque([model])\ndef f(x): return a[0](x)",
    "keyword": "def f(x, *, m=model): return m(x)",
    "generator": "def g(x): yield model(x)\ndef f(x): return next(g(x))",
}


def space_of(text: str) -> dict[str, Any]:
    """Return the globals of a text, which is as a file of its own."""
    space: dict[str, Any] = {"__name__": "users_file", "pc": pc, "nn": nn}
    space |= {"types": types, "collections": collections}
    exec(text, space)
    return space


@pytest.mark.parametrize("name", TEXTS)
def test_modes_of_modules_wherever_they_are(name: str) -> None:
    space = space_of("model = nn.Dropout(0.5)\n" + TEXTS[name])
    compiled = frozen(space["f"])
    x = pc.ones(64)
    for _ in range(3):
        assert (compiled(x) == 0).any()
    space["model"].eval()
    for _ in range(3):
        assert_same(compiled(x), x)


VALUES: dict[str, tuple[str, str]] = {
    "number": ("s = 2.0\ndef f(x): return x * s", "s = 3.0"),
    "number of an object": (
        "class A: pass\na = A(); a.s = 2.0\ndef f(x): return x * a.s",
        "a.s = 3.0",
    ),
    "item of a list": ("a = [2.0]\ndef f(x): return x * a[0]", "a[0] = 3.0"),
    "item of a dict": ("a = {'s': 2.0}\ndef f(x): return x * a['s']", "a['s'] = 3.0"),
    "tensor in a list": ("a = [pc.ones(3)]\ndef f(x): return x * a[0]", "a[0] = pc.zeros(3)"),
    "tensor in a dict": ("a = {1: pc.ones(3)}\ndef f(x): return x * a[1]", "a[1] = pc.zeros(3)"),
    "module in a list": ("a = [nn.ReLU()]\ndef f(x): return a[0](x)", "a[0] = nn.Tanh()"),
    "function": ("def g(x): return x * 2\ndef f(x): return g(x)", "def g(x): return x * 3"),
    "global of forward": (MODULE_WITH_OWN_VALUES, "s = 3.0"),
    "list of a module": (MODULE_WITH_OWN_VALUES, "model.numbers[0] = 3.0"),
    "dict of a module": (MODULE_WITH_OWN_VALUES, "model.table['a'] = 3.0"),
    "tensor of a module": (MODULE_WITH_OWN_VALUES, "model.plain = pc.zeros(3)"),
    "module in a list of a module": (MODULE_WITH_OWN_VALUES, "model.hidden[0].p = 0.9"),
    "forward of a module": (MODULE_WITH_OWN_VALUES, "model.forward = lambda x: x * 5"),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_wherever_they_are(name: str) -> None:
    text, change = VALUES[name]
    space = space_of(text)
    compiled = frozen(space["f"])
    x = T([1.0, -2.0, 3.0])
    for _ in range(4):
        compiled(x)
    exec(change, space)
    for _ in range(4):
        pc.manual_seed(0)
        got = compiled(x)
        pc.manual_seed(0)
        assert_same(got, space["f"](x))


def test_changes_again_and_again() -> None:
    module = nn.Dropout(0.5)
    compiled = frozen(module)
    x = pc.ones(64)
    for k in range(40):
        module.p = 0.5 * (k % 2)
        for _ in range(4):
            assert bool((compiled(x) == 0).any()) == (k % 2 == 1)


def test_parameters_are_replaced_again_and_again() -> None:
    module = linear()
    compiled = frozen(module)
    x = pc.ones(1, 2)
    with no_grad():
        for _ in range(40):
            module.weight = nn.Parameter(pc.randn(2, 2))
            for _ in range(4):
                assert_same(compiled(x), module(x))


def test_weights_that_are_written() -> None:
    base = pc.randn(6, 3)
    w = base[:3]

    def function(x: Any) -> Any:
        return x @ (w.T.contiguous() * 2 + 1)

    compiled = frozen(function)
    x = pc.randn(2, 3)

    def by_array() -> None:
        base.numpy()[:] = 1

    for write in (
        lambda: None,
        lambda: w.mul_(1.5),
        lambda: base.zero_(),
        lambda: w.data.fill_(3),
        by_array,
    ):
        write()
        for _ in range(4):
            assert_same(compiled(x), function(x))


class Counter(nn.Module):
    """A module with state of its own that others change."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.log = 0, [0]

    def forward(self, x: pc.Tensor) -> pc.Tensor:
        return x + 1 if self.count + len(self.log) < 100 else x


def test_what_changes_at_each_call() -> None:
    values: list[int] = []
    number = 0
    counter, other = Counter(), Counter()

    def grow() -> None:
        nonlocal number
        values.append(1)
        number += 1
        counter.count += 1
        other.log.append(1)

    def call(compiled: Any, function: Any) -> None:
        for _ in range(20):
            assert_same(compiled(x), function(x))
            grow()

    cases: dict[str, Any] = {
        "the size of 'values'": lambda x: x * 2 if len(values) < 200 else x,
        "'number'": lambda x: x * 2 if number < 200 else x,
        "'count'": counter,
        "the size of 'log'": other,
    }
    x = pc.ones(2)
    for text, function in cases.items():
        with pytest.warns(UserWarning, match=f"recorded 5 times, .* ran: {text} changes") as seen:
            call(frozen(function), function)
        assert len(seen) == 1
        assert Path(seen[0].filename) == Path(__file__)


def test_what_changes_now_and_then() -> None:
    counter = Counter()
    compiled = frozen(counter)
    x = pc.ones(2)
    for k in range(40):
        assert_same(compiled(x), counter(x))
        counter.count += k % 4 == 3
    assert len(compiled.graphs()) == 10


# The generator, and versions


def test_a_function_that_sets_the_generator_is_no_graph() -> None:
    def seeded(x: Any) -> Any:
        pc.manual_seed(3)
        return x + pc.rand(2)

    def turned_back(x: Any) -> Any:
        state = pc.get_rng_state()
        first = pc.rand(2)
        pc.set_rng_state(state)
        return x + first + pc.rand(2)

    pc.manual_seed(0)
    for function in (seeded, turned_back):
        with pytest.raises(NotImplementedError, match="rand: the function has set the random gen"):
            frozen(function)(pc.ones(2))
    compiled = compile(turned_back)  # Python runs
    for _ in range(4):
        state = pc.get_rng_state()
        expected = turned_back(pc.ones(2))
        pc.set_rng_state(state)
        assert_same(compiled(pc.ones(2)), expected)


def test_a_checkpoint_of_layers_that_draw_is_no_graph() -> None:
    layers = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    def step(x: Any) -> Any:
        loss = checkpoint(layers, x).sum()
        loss.backward()
        return loss

    with pytest.raises(NotImplementedError, match="or a checkpoint of layers that draw"):
        frozen(step)(pc.ones(3, 2))


def test_versions_of_results_are_those_of_the_function() -> None:
    def function(x: Any) -> Any:
        new, written = x * 2, x + 1
        written.mul_(2)
        view = written[1:]
        view.add_(1)
        x.neg_()
        return new, written, view, x, (x + 1).exp() * 3, pc.cat([x, x])

    compiled = frozen(function)
    for _ in range(4):
        x, y = pc.randn(3), pc.randn(3)
        for got, expected in zip(compiled(x), function(y), strict=True):
            assert got._version == expected._version


USES: dict[str, Callable[[Any], Any]] = {
    "one": lambda w: w * 2,
    "two": lambda w: (w * 2) * w.sum(),
    "three": lambda w: w * 2 + w * 3 + w.exp(),
    "an intermediate value": lambda w: (w * 1).exp() * (w * 1).sum() + (w + 1).pow(2) * (w + 1),
    "two passes": lambda w: ((w * 2 + w).sum().backward(), w * 2 + w.exp())[1],
}


@pytest.mark.parametrize("name", USES)
def test_versions_of_gradients_count_passes_alone(name: str) -> None:
    def versions(**mode: Any) -> list[int]:
        w = nn.Parameter(pc.ones(2, 2))

        def step(x: Any) -> Any:
            w.grad = None
            loss = (USES[name](w) * x).sum()
            loss.backward()
            return loss

        function, result = compile(step, **mode) if mode else step, []
        for _ in range(4):
            function(pc.ones(2, 2))
            result.append(w.grad._version)
        return result

    eager = versions()
    assert eager == [int(name == "two passes")] * 4
    assert versions(frozen=True) == eager and versions(frozen=False) == eager
