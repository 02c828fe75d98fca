"""Compiled functions with free sizes: one program for sizes that were not recorded."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import plait_autograd
import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_graph import Dim, _families, compile, cond, while_loop

sys.path.insert(0, str(Path(__file__).parent))
from same_bits import Counted, assert_same

F = nn.functional


class Attention(nn.Module):
    """Causal attention of several heads, as a GPT has it."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: Any) -> Any:
        """Attend to what stands before."""
        batch, length, size = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, size // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(size, dim=2)
        )
        scores = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(size // self.heads))
        at = pc.arange(length)
        scores = scores.masked_fill(at[None, :] > at[:, None], float("-inf"))
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).contiguous().view(batch, length, size)
        return self.out(y)


class Gpt(nn.Module):
    """A small language model."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(16, 8)
        self.attention, self.norm = Attention(8, 2), nn.LayerNorm(8)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens: Any) -> Any:
        """Return the logits of the next tokens."""
        x = self.tokens(tokens) + self.places(pc.arange(tokens.shape[1]))
        return self.head(self.norm(x + self.attention(x)))


def conv_net() -> Any:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )


def mlp() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def rows(n: int) -> tuple[Any, ...]:
    return (pc.randn(n, 4),)


def images(n: int, height: int, width: int) -> tuple[Any, ...]:
    return (pc.randn(n, 2, height, width),)


def texts(n: int, length: int) -> tuple[Any, ...]:
    return (pc.randint(0, 11, (n, length)),)


CASES: dict[str, tuple[Callable[[], Any], Callable[..., Any], Any, list[Any], list[Any]]] = {
    "mlp": (mlp, rows, {0: {0: "batch"}}, [(5,), (8,), (13,)], [(2,), (7,), (64,)]),
    "mlp, found": (mlp, rows, True, [(5,), (8,), (13,)], [(2,), (7,), (64,)]),
    "conv, images": (
        conv_net,
        images,
        [{0: "n", 2: "h", 3: "w"}],
        [(2, 16, 17), (3, 17, 16), (2, 19, 22), (4, 18, 21), (3, 24, 19)],
        [(5, 30, 33), (3, 20, 20), (7, 41, 23), (2, 27, 16)],
    ),
    "gpt": (
        Gpt,
        texts,
        [("batch", Dim("length", max=16))],
        [(2, 5), (3, 5), (2, 6), (4, 8)],
        [(2, 2), (5, 16), (3, 7)],
    ),
}


def run(compiled: Any, counted: Counted, function: Any, args: Sequence[Any]) -> int:
    """Compare a call with one of the function itself; return how often the function was called."""
    before = counted.calls
    state = pc.get_rng_state()
    result = compiled(*args)
    pc.set_rng_state(state)
    assert_same(result, function(*args))
    return counted.calls - before


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("trains", [False, True])
def test_models_at_other_sizes(name: str, trains: bool) -> None:
    make, batch, dynamic, recorded, others = CASES[name]
    pc.manual_seed(0)
    model = make()
    model.train(trains)
    counted = Counted(copy.deepcopy(model))
    compiled = compile(counted, frozen=True, dynamic=dynamic)
    with plait_autograd.set_grad_enabled(trains):
        for sizes in recorded:
            assert run(compiled, counted, model, batch(*sizes)) == 1
        for sizes in others:
            assert run(compiled, counted, model, batch(*sizes)) == 0, compiled._families.problems()
            if trains:
                args = batch(*sizes)
                for function in (compiled, model):
                    function(*args).square().mean().backward()
                for p, q in zip(counted.function.parameters(), model.parameters(), strict=True):
                    assert_same(p.grad, q.grad)
    assert_same(counted.function.state_dict(), model.state_dict())


def calls_at(function: Any, sizes: Sequence[int], dynamic: Any = True) -> tuple[list[int], Any]:
    """Run a function of one matrix at several sizes; return how often each call ran Python."""
    counted = Counted(function)
    compiled = compile(counted, frozen=True, dynamic=dynamic)
    return [run(compiled, counted, function, rows(n)) for n in sizes], compiled


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.view(x.shape[0] * 2, -1),
        lambda x: x.reshape(2, x.size(0) * x.size(1) // 2).sum(1),
        lambda x: x[: x.shape[0] // 2, 1:] * x.shape[0],
        lambda x: x[x.shape[0] - 2] + x[-x.shape[0] :].mean(0) + x.sum() / x.shape[0],
        lambda x: pc.zeros(x.shape[0] + 1, dtype=x.dtype) + x.numel(),
        lambda x: pc.cat([x, x[1:]]).unflatten(0, (x.shape[0] * 2 - 1, 1)),
        lambda x: x.new_zeros(x.shape[::-1]).expand(3, *x.shape[::-1]).contiguous(),
        lambda x: pc.tril(pc.ones(x.shape[0], x.shape[0])) @ x,
        lambda x: x.t().reshape(-1)[: -(-x.shape[0] // 4)],
        lambda x: x.std(0) + x.var(0, correction=0) + x.mean(),
        lambda x: F.pad(x, (0, x.shape[0] % 4)),
    ],
)
def test_what_is_computed_of_sizes(function: Any) -> None:
    calls, compiled = calls_at(function, [5, 6, 9, 13, 22, 7, 3])
    assert calls == [1, 1, 1, 0, 0, 0, 0], compiled._families.problems()


def test_a_branch_is_recorded_apart() -> None:
    def function(x: Any) -> Any:
        if x.shape[0] > 10:
            return x * 2
        return x + 1 if x.shape[0] % 2 else x - min(x.shape[0], 8)

    sizes = [4, 6, 8, 3, 12, 5, 7, 9, 10, 14, 13, 20, 11]
    calls, _ = calls_at(function, sizes)
    assert calls == [1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0]


def reads_in_a_loop(x: Any) -> Any:
    for i in range(x.shape[0]):
        if i == 7:
            x = x * 2
    return x


@pytest.mark.parametrize(
    "function",
    [
        reads_in_a_loop,
        lambda x: x * 2 if int(x.shape[0]) > 6 else x,
        lambda x: x * 2 if float(x.shape[0]) > 6 else x,
        lambda x: x * 2 if len(x) > 6 else x,
        lambda x: x * 2 if x.shape[0] / 2 > 3 else x,
        lambda x: x * 2 if x.shape[0] * 0.5 > 3 else x,
        lambda x: x * 2 if math.log(x.shape[0]) > 1.8 else x,
        lambda x: x * 2 if x.shape[0] in {7: 1, 8: 2} else x,
        lambda x: x * 2 if str(x.shape[0]) == "7" else x,
        lambda x: x * 2 if f"{x.shape}" == "plait.Size([7, 4])" else x,
        lambda x: x * 2 if x.shape[0].bit_length() > 2 else x,
        lambda x: x * 2 if [0] * x.shape[0] > [0] * 6 else x,
        lambda x: x * 2 if x.shape[0] & 4 else x,
        lambda x: x * 2 if x.shape == (7, 4) else x,
        lambda x: x * 2 if x.stride(1) * x.numel() == 28 else x,
        lambda x: x * 2 if x.nbytes > 100 else x,
        lambda x: x * 2 if not x.shape[0] - 7 else x,
        lambda x: x * 2 if 2 ** x.shape[0] > 100 else x,
        lambda x: x + pc.tensor([x.shape[0] > 6]).int(),
        lambda x: x[range(x.shape[0] // 2)],
    ],
)
def test_no_branch_is_overlooked(function: Any) -> None:
    calls_at(function, [3, 4, 5, 6, 7, 8, 9, 7, 7, 3])


def test_a_size_that_is_returned_is_a_plain_int() -> None:
    compiled = compile(lambda x: (x + 1, x.shape[0]), frozen=True, dynamic=True)
    for n in (3, 4, 5, 6):
        size = compiled(*rows(n))[1]
        assert type(size) is int and size == n


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (lambda x: F.adaptive_avg_pool2d(x[None], (2, 2)), [4, 6, 8, 10, 7, 12, 9]),
        (lambda x: F.adaptive_avg_pool2d(x[None], (2, 2)), [5, 7, 9, 11, 8, 13]),
        (lambda x: x.expand(6, *x.shape[1:]) if x.shape[0] == 1 else x, [4, 6, 8, 1, 5, 1]),
        (lambda x: x + pc.ones(1, 4).expand_as(x).mean(0), [4, 6, 8, 1, 2]),
        (lambda x: F.adaptive_max_pool2d(x[None], (3, 2))[0] * 2, [6, 9, 12, 15, 7, 8]),
        (lambda x: pc.chunk(x, 2)[0].sum(0), [4, 6, 8, 10, 7, 5]),
    ],
)
def test_branches_of_operators(function: Any, sizes: list[int]) -> None:
    calls, _ = calls_at(function, sizes)
    assert calls[:3] == [1, 1, 1]
    counted = Counted(function)
    compiled = compile(counted, frozen=True, dynamic=True)
    for n in sizes:
        x = pc.randn(n, 4)
        y = x.clone().requires_grad_()
        x.requires_grad_()
        compiled(x).square().sum().backward()
        function(y).square().sum().backward()
        assert_same(x.grad, y.grad)


def test_dimensions_that_were_equal_by_chance() -> None:
    counted = Counted(lambda x, y: (x.sum(0) * y.shape[0], y[: x.shape[0]]))
    compiled = compile(counted, frozen=True, dynamic=True)
    for n, m in [(3, 3), (4, 4), (5, 5), (6, 6), (6, 8), (7, 9), (5, 9), (9, 12)]:
        run(compiled, counted, counted.function, (pc.randn(n, 2), pc.randn(m, 2)))
    assert counted.calls == 7  # y[:n] is y itself in the first three


def test_a_step_of_training_at_the_sizes_of_a_loader() -> None:
    def make() -> tuple[Any, Any]:
        pc.manual_seed(0)
        model = mlp()
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step, model

    (one, model), (other, same) = make(), make()
    counted = Counted(one)
    compiled = compile(counted, frozen=True, dynamic=({0: "batch"}, {0: "batch"}))
    for n in [16, 16, 16, 10, 4, 7, 16, 9, 33]:
        x, y = pc.randn(n, 4), pc.randint(0, 3, (n,))
        assert_same(compiled(x, y), other(x, y))
    assert_same(model.state_dict(), same.state_dict())
    assert counted.calls <= 6


def test_what_changes_besides_sizes() -> None:
    model = mlp()
    counted = Counted(lambda x: model(x))
    compiled = compile(counted, frozen=True, dynamic=[{0: "n"}])
    model.eval()
    for n in (3, 4, 5):
        run(compiled, counted, model, rows(n))
    model[3].weight = nn.Parameter(pc.randn(3, 8))
    assert run(compiled, counted, model, rows(6)) == 1
    assert run(compiled, counted, copy.deepcopy(model), (pc.randn(8, 4).t().contiguous().t(),)) == 1


def test_programs_for_sizes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, compiled = calls_at(lambda x: x * 2, range(2, 80))
    assert sum(calls) == 3
    assert 8 < sum(map(len, compiled._programs.values())) <= 64
    monkeypatch.setattr(_families, "_SMALL_BYTES", -1)  # all programs are large
    calls, compiled = calls_at(lambda x: x * 2, range(2, 20))
    assert sum(calls) == 3
    assert sum(map(len, compiled._programs.values())) <= 8


def test_ranges() -> None:
    counted = Counted(lambda x: x * 2)
    dynamic = [{0: Dim("n", min=1, max=10)}]
    compiled = compile(counted, frozen=True, dynamic=dynamic)
    calls = [run(compiled, counted, counted.function, rows(n)) for n in (4, 5, 6, 1, 10, 11, 0)]
    assert calls[3:] == [0, 0, 1, 1]


def test_wrong_sizes_are_errors_of_the_function() -> None:
    compiled = compile(lambda x, y: x @ y, frozen=True, dynamic=True)
    for n in (3, 4, 5):
        compiled(pc.ones(2, n), pc.ones(n, 2))
    with pytest.raises(RuntimeError, match="matmul"):
        compiled(pc.ones(2, 6), pc.ones(7, 2))


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        (3, "must be True, a dict or a sequence"),
        ({"z": {0: "n"}}, "names 'z'"),
        ({"x": {2: "n"}}, "has dimension 2"),
        ({"x": "n"}, "a dict or an entry for each dimension"),
        ({"x": ("n",)}, "a dict or an entry for each dimension"),
        ({"x": {0: 3}}, "names or Dim"),
        ({"x": {0: "a b"}}, "letters, digits"),
        ([None, None], "has 2 entries"),
        ({"x": {0: Dim("n", min=3), 1: Dim("n", min=4)}}, "two ranges"),
    ],
)
def test_errors_of_dynamic(dynamic: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile(lambda x: x, frozen=True, dynamic=dynamic)(pc.ones(2, 3))


def test_errors_of_dim() -> None:
    for limits in ({"min": -1}, {"min": 3, "max": 2}, {"max": 2**63}, {"min": 1.5}):
        with pytest.raises(ValueError, match="Dim"):
            Dim("n", **limits)


def test_branches_and_loops_are_recorded_for_each_size() -> None:
    def function(x: Any, y: Any) -> Any:
        a, b = cond(x.sum() > 0, lambda a, b: (a + b, a * 2), lambda a, b: (a - b, b * 3), (x, y))
        n = x.shape[0]
        return a, b, while_loop(lambda v, k: k < n, lambda v, k: (v * 2, k + 1), (y, pc.tensor(0)))

    compiled = compile(function, frozen=True, dynamic=True)
    with plait_autograd.no_grad():
        for n in (3, 3, 5, 4, 7, 5, 3):
            x, y = pc.randn(n), pc.randn(n)
            assert_same(compiled(x, y), function(x, y))
