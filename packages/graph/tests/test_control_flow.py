"""`cond` and `while_loop`: compiled, from a file, and with gradients."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_abi
import plait_autograd
import plait_core as pc
import plait_nn as nn
from plait_graph import compile, cond, export, load, while_loop

sys.path.insert(0, str(Path(__file__).parent))

from c_interface import Run, load as load_library
from same_bits import bits

HERE = Path(__file__).parent
ALLOCATIONS = [HERE / "programs" / f"{name}.cpp" for name in ("allocations", "count_allocations")]


def same_bits(one: Any, other: Any) -> bool:
    return bool(bits(one) == bits(other))


def frozen(function: Callable[..., Any], *calls: tuple[Any, ...]) -> Any:
    """Return a compiled function that ran on the arguments of each call as the function does."""
    compiled = compile(function, frozen=True)
    for args in (*calls, *calls):
        expected = function(*args)
        got = compiled(*args)
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert same_bits(one, other)
            assert one.stride() == other.stride()
    assert len(compiled.graphs()) == 1
    return compiled


# ---- values --------------------------------------------------------------------------------------


def test_a_branch_is_chosen_at_each_run(tmp_path: Path) -> None:
    scale = pc.tensor([2.0, 3.0])

    def function(x: Any) -> Any:
        positive = x.sum() > 0
        y, n = cond(
            positive,
            lambda x: (x * scale, pc.tensor(1)),
            lambda x: ((x - 1).reshape(1, 2).T.flatten(), pc.tensor(-1)),
            (x,),
        )
        return y + 1, n

    calls = [(pc.tensor([1.0, 2.0]),), (pc.tensor([-1.0, -2.0]),)]
    compiled = frozen(function, *calls)
    scale.mul_(10)
    assert compiled(*calls[0])[0].tolist() == [21.0, 61.0]
    export(function, calls[0], tmp_path / "cond")
    run = load(tmp_path / "cond")
    for call in calls:
        assert all(same_bits(a, b) for a, b in zip(run(*call), function(*call), strict=True))


def test_a_loop_makes_as_many_rounds_as_its_values_need() -> None:
    def root(x: Any, a: Any) -> Any:  # Newton's iteration
        return while_loop(
            lambda x, n: ((x * x - a).abs().max() > 1e-5) & (n < 50),
            lambda x, n: ((x + a / x) / 2, n + 1),
            (x, pc.tensor(0)),
        )

    calls = [(pc.ones(3), pc.tensor([2.0, 3.0, a])) for a in (5.0, 1e6, 1.0)]
    compiled = frozen(root, *calls, (pc.tensor([2.0, 3.0, 4.0]), pc.tensor([4.0, 9.0, 16.0])))
    rounds = [compiled(*call)[1].item() for call in calls]
    assert rounds[0] < rounds[1] < 50


def test_branches_in_a_loop_in_a_branch() -> None:
    def collatz(n: Any) -> Any:
        def length(n: Any) -> Any:
            def step(n: Any, count: Any) -> Any:
                n = cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, (n,))
                return n, count + 1

            return while_loop(lambda n, count: n != 1, step, (n, pc.zeros_like(n)))[1]

        return [cond(n > 0, length, lambda n: n.new_full((), -1), (n,))]

    compiled = frozen(collatz, *((pc.tensor(n),) for n in (6, 1, 0, 27)))
    assert compiled(pc.tensor(27))[0].item() == 111


def test_values_swap_places() -> None:
    def fibonacci(a: Any, b: Any, n: Any) -> Any:
        return while_loop(lambda a, b, n: n > 0, lambda a, b, n: (b, a + b, n - 1), (a, b, n))

    def turned(x: Any, y: Any, n: Any) -> Any:
        return while_loop(lambda x, y, n: n > 0, lambda x, y, n: (y.T, x, n - 1), (x, y, n))

    frozen(fibonacci, *((pc.tensor(0), pc.tensor(1), pc.tensor(n)) for n in (0, 1, 10)))
    x = pc.arange(9.0).reshape(3, 3)
    frozen(turned, *((x, x + 9, pc.tensor(n)) for n in (0, 1, 2, 3)))


def test_a_body_writes_to_a_carried_value() -> None:
    def powers(x: Any, table: Any) -> Any:
        def body(n: Any, power: Any, table: Any) -> Any:
            table.index_copy_(0, n.reshape(1), power.reshape(1))
            return n + 1, power * x, table

        return while_loop(
            lambda n, power, table: n < table.shape[0], body, (pc.tensor(0), pc.ones(()), table)
        )

    table = pc.zeros(5)
    compiled = frozen(powers, (pc.tensor(2.0), table), (pc.tensor(3.0), table))
    assert compiled(pc.tensor(2.0), table)[2].tolist() == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert table.tolist() == [0.0] * 5


def test_operands_that_are_views_of_each_other() -> None:
    def function(x: Any) -> Any:
        y = x[1:]
        z = x.clone()
        part = z[0]
        return cond(
            x.sum() > 0,
            lambda a, b, c: (a + part, b * z[1], c),
            lambda a, b, c: (a, b.flip(0), a),
            (x[:-1], y, x[:-1]),
        )

    frozen(function, (pc.tensor([[1.0, 2.0]] * 3),), (pc.tensor([[-1.0, -2.0]] * 3),))


def test_results_are_new_tensors_in_c_order() -> None:
    def function(x: Any) -> Any:
        same, turned, twice = cond(x.sum() > 0, lambda x: (x, x.T, x), lambda x: (-x, x, x), (x,))
        (kept,) = while_loop(lambda x: x.sum() < -100, lambda x: (x - 1,), (x.T,))
        outer = cond(x.sum() > 0, lambda: (state, state[1:]), lambda: (state[:], state[1:] + 1))
        results = (same, turned, twice, kept, *outer)
        for i, result in enumerate(results):
            result.add_(i)
        return results

    state = pc.ones(3)
    x, y = pc.ones(3, 3), -pc.ones(3, 3)
    compiled = frozen(function, (x,), (y,))
    assert x.tolist() == [[1.0] * 3] * 3 and state.tolist() == [1.0] * 3
    assert [t.sum().item() for t in compiled(x)] == [9.0, 18.0, 27.0, 36.0, 15.0, 12.0]


def test_draws_are_those_of_the_chosen_branch() -> None:
    def function(x: Any) -> Any:
        first = pc.rand(2)
        y = cond(x.sum() > 0, lambda x: x + pc.rand(2), lambda x: x * pc.randn(2, 2)[0], (x,))
        (z,) = while_loop(lambda z: z.sum() < 3, lambda z: (z + pc.rand(2),), (x,))
        return first, y, z, pc.rand(2)

    compiled = compile(function, frozen=True)
    for seed in range(6):
        x = pc.full((2,), 1.0 - 2 * (seed % 2))
        pc.manual_seed(seed)
        expected = function(x)
        pc.manual_seed(seed)
        got = compiled(x)
        assert all(same_bits(a, b) for a, b in zip(got, expected, strict=True))
    assert len(compiled.graphs()) == 1


def test_checked_calls() -> None:
    w = pc.randn(3, 3).requires_grad_()

    def function(x: Any) -> Any:
        y = cond(x.sum() > 0, lambda x: (x @ w).tanh(), lambda x: x * 3, (x,))
        return y.sum() * 2

    compiled = compile(function, frozen=True, check=1)
    for seed in range(5):
        pc.manual_seed(seed)
        x = pc.randn(3, 3)
        assert all(map(same_bits, gradients(compiled, x, [w]), gradients(function, x, [w])))


def test_a_bool_is_chosen_in_python() -> None:
    def function(x: Any, up: bool) -> Any:
        return [cond(up, lambda x: x + 1, lambda x: x - 1, (x,))]

    compiled = compile(function, frozen=True)
    for up in (True, False):
        for _ in range(3):
            assert compiled(pc.zeros(1), up)[0].item() == (1 if up else -1)
    assert [graph.nodes[0].op for graph in compiled.graphs()] == ["add", "sub"]


def test_predicates_of_other_dtypes() -> None:
    def function(x: Any) -> Any:
        (y,) = while_loop(lambda y: y, lambda y: (y - 1,), (x,))
        return cond(x, lambda: pc.ones(2), lambda: pc.zeros(2)), y

    frozen(function, *((pc.tensor([value]),) for value in (0.0, 2.0, 3.0)))


# ---- without Python ------------------------------------------------------------------------------


def test_a_loop_allocates_nothing(
    compiled: Callable[..., Path], libraries: str, tmp_path: Path
) -> None:
    if "-fsanitize" in os.environ.get("PLAIT_BUILD_FLAGS", ""):
        pytest.skip("the sanitizer has malloc")
    layer = nn.Linear(3, 3)

    def body(n: Any, x: Any, y: Any) -> Any:
        z = cond(n % 2 == 0, lambda x: layer(x).tanh(), lambda x: x.T.flip(0), (x,))
        return n + 1, y[:], z + n

    def function(x: Any) -> Any:
        n, x, y = while_loop(lambda n, x, y: n < 5, body, (pc.tensor(0), x, x * 2))
        return cond(x.sum() > 0, lambda x, y: (x[0], y), lambda x, y: (y[1], x * n), (x, y))

    export(function, (pc.ones(3, 3),), tmp_path / "file")
    program = compiled("allocations", *ALLOCATIONS)
    done = subprocess.run([program, tmp_path / "file", libraries], capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", "0 1\n")


def test_what_rounds_have_in_common_is_computed_once() -> None:
    profiler = pytest.importorskip("plait_profiler")
    side = 30
    x, w = pc.rand(side, side), pc.rand(side, side) / side

    def function(n: Any, w: Any) -> Any:
        return while_loop(
            lambda n, y: n < 100,
            lambda n, y: (n + 1, y * 0.5 + (w @ w @ w).sum()),
            (n, pc.zeros(())),
        )

    compiled = frozen(function, *((pc.tensor(n), x) for n in (98, 100)), (pc.tensor(99), w))

    with profiler.profile() as profile:
        compiled(pc.tensor(0), w)
    counts = {row.key: row.count for row in profile.key_averages()}
    assert (counts["mm"], counts["sum"], counts["mul"]) == (2, 1, 100)


def test_regions_share_one_block(libraries: str, tmp_path: Path) -> None:
    def large(x: Any) -> Any:
        return ((x + 1).exp() @ x).sum(1)

    def function(x: Any) -> Any:
        y = x.sum(1)
        for _ in range(10):
            y = y + cond(y.sum() > 0, large, lambda x: large(x) * 2, (x,))
        return y

    sizes = []
    for one in (function, large):
        export(one, (pc.ones(100, 100),), tmp_path / "file")
        run = Run(
            load_library(plait_abi.paths("plait_graph")["libplait_run.so"]),
            str(tmp_path / "file"),
            libraries,
        )
        sizes.append(run.memory())
        run.close()
    assert sizes[0] < 1.1 * sizes[1]


def test_ctrl_c_ends_a_loop() -> None:
    code = """
import signal
import plait_core as pc
from plait_graph import compile, while_loop

run = compile(lambda n: while_loop(lambda n: n > 0, lambda n: (n * 1,), (n,)), frozen=True)
run(pc.tensor(-1)), run(pc.tensor(-1))
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    run(pc.tensor(1))
except KeyboardInterrupt:
    print(run(pc.tensor(-3))[0].item())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert (done.stdout, done.stderr) == ("-3\n", "")


# ---- gradients -----------------------------------------------------------------------------------


def gradients(function: Callable[..., Any], x: Any, sources: list[Any]) -> list[Any]:
    x = x.detach().requires_grad_()
    for source in sources:
        source.grad = None
    function(x).backward()
    grads = [x.grad, *(source.grad for source in sources)]
    like = [x, *sources]
    return [pc.zeros_like(t) if g is None else g for g, t in zip(grads, like, strict=True)]


def test_gradients_of_the_chosen_branch() -> None:
    weight, bias = (pc.randn(*shape).requires_grad_() for shape in ((3, 3), (3,)))

    def function(x: Any) -> Any:
        hidden = (x @ weight).tanh()
        y, n = cond(
            x.sum() > 0,
            lambda h, x: ((h * bias).exp() + x, pc.tensor(1)),
            lambda h, x: (h * weight[0] - x * pc.tensor([1.0, 2.0, 3.0]), pc.tensor(2)),
            (hidden, x),
        )
        return (y * y).sum() * n

    compiled = compile(function, frozen=True)
    for seed in range(8):
        pc.manual_seed(seed)
        x = pc.randn(2, 3)
        expected = gradients(function, x, [weight, bias])
        got = gradients(compiled, x, [weight, bias])
        assert all(map(same_bits, got, expected)), seed
    assert [[n.op for n in g.nodes].count("cond") for g in compiled.graphs()] == [1, 1]


def test_a_training_step_with_branches(tmp_path: Path) -> None:
    optim = pytest.importorskip("plait_optim")

    def make() -> tuple[Any, Callable[..., Any]]:
        pc.manual_seed(0)
        model = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)])
        optimizer = optim.Adam(model.parameters(), lr=0.05)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad(set_to_none=False)
            hidden = cond(
                x.mean() > 0,
                lambda x: model[0](x).relu(),
                lambda x: cond(x.max() > 1, lambda x: model[1](x), lambda x: x.sin(), (x,)),
                (x,),
            )
            loss = nn.functional.cross_entropy(model[2](hidden), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        for parameter in model.parameters():
            parameter.grad = pc.zeros_like(parameter)
        return model, step

    (model, step), (other, own) = make(), make()
    compiled = compile(own, frozen=True)
    for seed in range(8):
        pc.manual_seed(seed)
        x, y = pc.randn(5, 4), pc.randint(0, 2, (5,))
        assert same_bits(step(x, y), compiled(x, y))
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert same_bits(a, b)
    assert len(compiled.graphs()) == 1
    export(own, (x, y), tmp_path / "step", training=True)
    run = load(tmp_path / "step")
    for name, parameter in other.named_parameters():
        assert same_bits(run.weights[name], parameter)
    step(x, y), step(x, y)
    for seed in range(4):
        pc.manual_seed(seed)
        x, y = pc.randn(5, 4), pc.randint(0, 2, (5,))
        assert same_bits(run(x, y), step(x, y))


def test_gradients_of_gradients_are_those_of_the_function() -> None:
    def function(x: Any) -> Any:
        return cond(x.sum() > 0, lambda x: (x**3).sum(), lambda x: x.sum(), (x,))

    compiled = compile(function, frozen=True)
    for _ in range(3):
        x = pc.tensor([1.0, 2.0], requires_grad=True)
        (first,) = plait_autograd.grad(compiled(x), x)
        assert first.tolist() == [3.0, 12.0]
    (first,) = plait_autograd.grad(compiled(x), x, create_graph=True)
    (second,) = plait_autograd.grad(first.sum(), x)
    assert second.tolist() == [6.0, 12.0]


def test_a_loop_outside_of_a_capture_has_gradients() -> None:
    x = pc.tensor(3.0, requires_grad=True)
    (y,) = while_loop(lambda y: y < 100, lambda y: (y * x,), (x,))
    y.backward()
    assert (y.item(), x.grad.item()) == (243.0, 5 * 81.0)


# ---- errors --------------------------------------------------------------------------------------


def fails(function: Callable[..., Any], x: Any, kind: type[Exception], text: str) -> None:
    compiled = compile(function, frozen=True)
    with pytest.raises(kind, match=text):
        assert [compiled(x), compiled(x)] == []


X = pc.ones(3)
STATE = pc.zeros(3)
ROUNDS = [0]


def counting(x: Any) -> Any:
    ROUNDS[0] += 1
    return (x * ROUNDS[0],)


def branch(*functions: Any) -> Callable[..., Any]:
    return lambda x: cond(x.sum() > 100, *functions, (x,))


def loop(body: Any, condition: Any = lambda x: x.sum() < 9) -> Callable[..., Any]:
    return lambda x: while_loop(condition, body, (x,))


@pytest.mark.parametrize(
    ("function", "kind", "text"),
    [
        (
            branch(lambda x: x[:2], lambda x: x),
            ValueError,
            r"result 0 of `true_fn` is float32\[2\]",
        ),
        (branch(lambda x: x.long(), lambda x: x), ValueError, r"int64\[3\], that of `false_fn` fl"),
        (branch(lambda x: (x, x), lambda x: x), ValueError, "must return one structure"),
        (branch(lambda x: 1, lambda x: x), TypeError, "`true_fn` must return tensors, got int"),
        (branch(lambda x: x.add_(1), lambda x: x), NotImplementedError, "add: a function of cond"),
        (
            branch(lambda x: STATE.copy_(x), lambda x: x),
            NotImplementedError,
            r"writes to a tensor float32\(3,\) from outside of it; return the new value",
        ),
        (
            branch(lambda x: x * x.sum().item(), lambda x: x),
            NotImplementedError,
            "cond: `true_fn`: the function reads the elements of a tensor",
        ),
        (branch(lambda x: x.nonzero(), lambda x: x), ValueError, "result 0 of `true_fn` is int64"),
        (
            branch(lambda x: x[x > 0] + 1, lambda x: x),
            RuntimeError,
            "the shape of result 0 of the first branch depends on values",
        ),
        (
            loop(lambda x: (x[:2],)),
            ValueError,
            r"is float32\[2\], the carried value is float32\[3\]",
        ),
        (loop(lambda x: x), ValueError, "`body_fn` must return what it gets"),
        (loop(lambda x: (x + 1,), lambda x: x < 9), TypeError, r"one element, got bool\[3\]"),
        (loop(counting), NotImplementedError, "`body_fn` differs from round to round: mul"),
        (loop(lambda x: (STATE.add_(x),)), NotImplementedError, "writes to a tensor"),
        (loop(lambda x: (x + 1,), lambda x: x.add_(1).sum() < 9), NotImplementedError, "writes to"),
        (lambda x: cond(x, None, None), TypeError, r"one element, got a tensor float32\[3\]"),
        (lambda x: cond(True, None, None, x), TypeError, "`operands` must be a tuple of tensors"),
        (lambda x: cond(True, None, None, (1,)), TypeError, "must hold tensors, got int"),
    ],
)
def test_what_a_graph_cannot_have(
    function: Callable[..., Any], kind: type[Exception], text: str
) -> None:
    STATE.zero_()
    before = pc.get_rng_state()
    fails(function, X, kind, text)
    assert X.tolist() == [1.0] * 3 and STATE.tolist() == [0.0] * 3
    assert same_bits(pc.get_rng_state(), before)


KEPT: list[Any] = []


def keep(tensor: Any) -> Any:
    KEPT.append(tensor)
    return tensor


def kept(*functions: Any) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        KEPT.clear()
        y = cond(x.sum() > 0, *functions, (x,))
        return y + KEPT[0]

    return function


def kept_from_a_loop(at: int) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        KEPT.clear()
        (y,) = while_loop(lambda y: y.sum() < 40, lambda y: (keep(y * 2),), (x,))
        return y + KEPT[at]

    return function


@pytest.mark.parametrize(
    "function",
    [
        kept(lambda x: keep(x * 2) + 1, pc.sin),
        kept(lambda x: keep(x * 2)[1:].sum() + x, pc.sin),
        kept(pc.sin, lambda x: keep(x * 2)),
        kept(lambda x: cond(x[0] > 0, lambda x: keep(x * 2) + 1, pc.sin, (x,)), pc.sin),
        kept_from_a_loop(0),
        kept_from_a_loop(1),
    ],
)
def test_tensors_of_a_branch_stay_in_it(function: Callable[..., Any]) -> None:
    fails(function, X, NotImplementedError, "used outside of it; return it from there")


def test_results_may_be_kept() -> None:
    frozen(lambda x: [kept(lambda x: keep(x * 2), lambda x: keep(x * 3))(x)], (X,))
    frozen(lambda x: [kept_from_a_loop(-1)(x)], (X,))


def test_no_gradients_of_loops_and_draws() -> None:
    x = pc.ones(3, requires_grad=True)
    fails(loop(lambda x: (x + 1,)), x, NotImplementedError, "a loop in a graph has no gradients")
    fails(loop(lambda y: (y + x,)), X, NotImplementedError, "call it under no_grad")
    fails(branch(pc.rand_like, pc.exp), x, NotImplementedError, r"draws random numbers \(uniform_")

    def twice(x: Any) -> Any:
        y = cond(x.sum() > 0, pc.sin, pc.cos, (x,))
        (gradient,) = plait_autograd.grad(y.sum(), x, create_graph=True)
        return gradient

    fails(twice, x, NotImplementedError, "no gradients of gradients of cond")

    def reads_history(x: Any) -> Any:
        y = x * 2
        return cond(x.sum() > 0, lambda z: z * y, lambda z: z, (y,))

    fails(reads_history, x, NotImplementedError, "pass it as an operand")

    def written(x: Any) -> Any:
        z = x.detach() * 1
        y = cond(x.sum() > 0, lambda x: x * z, pc.cos, (x,))
        z.add_(1)
        y.sum().backward()

    fails(written, x, RuntimeError, r"tensor float32\[3\] that it reads was modified")


def test_no_gradients_of_branches_in_a_region_of_autocast() -> None:
    torch = pytest.importorskip("plait_torch._autocast")
    w = pc.randn(3, 3, requires_grad=True)

    def around(x: Any) -> Any:
        with torch.autocast("cpu"):
            return cond(x.sum() > 0, lambda x: x @ w, lambda x: x.mm(w.sin()), (x,)).float().sum()

    def within(x: Any) -> Any:
        def product(x: Any) -> Any:
            with torch.autocast("cpu"):
                return x @ w

        return cond(x.sum() > 0, product, lambda x: product(x.sin()), (x,)).float().sum()

    fails(around, pc.ones(3, 3), NotImplementedError, "begin the region in the functions")
    compiled = compile(within, frozen=True)
    for sign in (1, -1, 1, -1):
        grads = []
        for function in (within, compiled):
            w.grad = None
            function(pc.full((3, 3), 0.3 * sign)).backward()
            grads.append(w.grad)
        assert same_bits(*grads)


def test_writes_outside_of_a_capture_are_errors_too() -> None:
    with pytest.raises(RuntimeError, match="cond: `true_fn` writes to a tensor that it gets"):
        cond(True, lambda x: x.add_(1), None, (pc.ones(2),))
    with pytest.raises(RuntimeError, match="while_loop: `cond_fn` writes to a tensor"):
        while_loop(lambda x: x.add_(1) > 3, lambda x: (x,), (pc.ones(1),))
    with pytest.raises(ValueError, match="the carried value is float32"):
        while_loop(lambda x: x.sum() < 9, lambda x: (x.long(),), (pc.ones(1),))
