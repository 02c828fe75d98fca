"""Compiled functions: what they take and return, their keys, threads, exceptions and nesting."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_autograd import no_grad
from plait_func import grad, vmap
from plait_graph import compile
from plait_graph.interpreter import run_graph

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import Counted, assert_same

T = pc.tensor


def frozen(function: Callable[..., Any]) -> Any:
    return compile(function, frozen=True)


def repeat(call: Callable[[], Any], times: int = 8) -> None:
    for _ in range(times):
        call()


def agree(function: Callable[..., Any], *calls: tuple[Any, ...], times: int = 3) -> None:
    """Compare a function with its compiled form: each of the calls several times, in turns."""
    compiled = frozen(function)
    for _ in range(times):
        for args in calls:
            assert_same(compiled(*args), function(*args))


def test_python_does_not_run_behind_two_calls() -> None:
    function = Counted(lambda x: x * 2 + 1)
    compiled = frozen(function)
    for k in range(6):
        assert_same(compiled(T([1.0, k])), T([3.0, 2.0 * k + 1]))
    assert function.calls == 2


def test_arguments_by_value() -> None:
    x = T([1.0, 2.0, 3.0])
    agree(lambda x, s: x * s, (x, 2), (x, 2.0), (x, True), (x, 3))
    agree(lambda x, d: x.to(d), (x, pc.float64), (x, pc.float16), (x, pc.int64))
    agree(lambda x, s: x if s == "none" else getattr(x, s)(), (x, "none"), (x, "exp"))
    agree(lambda x, m=None: x if m is None else x * m, (x,), (x, x), (x, None))
    agree(lambda x, s: x.view(s), (x, pc.Size((3, 1))), (x, (1, 3)))


def test_signs_of_zeros_are_values() -> None:
    agree(lambda x, s: x * s, (T([1.0]), 0.0), (T([1.0]), -0.0))
    agree(lambda x, s: x * s, (T([1.0]), complex(0.0, 0.0)), (T([1.0]), complex(0.0, -0.0)))


def test_nan_is_one_value() -> None:
    function = Counted(lambda x, s: x * s)
    compiled = frozen(function)
    for _ in range(5):
        compiled(T([1.0]), float("nan"))
    assert function.calls == 2


def test_slices() -> None:
    x = T([1.0, 2.0, 3.0])
    agree(lambda x, s: x[s], (x, slice(1, 3)), (x, slice(0, 2)), (x, (slice(None), None)))


def test_structures() -> None:
    def function(d: Any, *rest: Any, k: Any = None) -> Any:
        y = d["x"][0] + rest[0] + (k[1] if k else 0)
        return {"y": y, "none": None, "pair": (rest[0] * 1, [y * 2])}

    compiled = frozen(function)
    for i in range(4):
        args = ({"x": [T([1.0 + i])]}, T([2.0]))
        got, expected = compiled(*args, k=(1, T([3.0]))), function(*args, k=(1, T([3.0])))
        assert type(got["pair"]) is tuple
        assert_same(got, expected)


def test_order_of_keywords() -> None:
    compiled = frozen(lambda **k: k["a"] * 10 + k["b"])
    for _ in range(3):
        assert_same(compiled(a=T([1.0]), b=T([2.0])), T([12.0]))
        assert_same(compiled(b=T([2.0]), a=T([1.0])), T([12.0]))


def test_named_tuples() -> None:
    compiled = frozen(lambda x: x.max(0))
    for k in range(4):
        result = compiled(T([1.0, k + 2.0]))
        assert (result.values.item(), result.indices.item()) == (k + 2.0, 1)


def test_dtypes() -> None:
    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64"):
        x = T([[0, 1], [1, 1]]).to(getattr(pc, name))
        agree(lambda x: (x + x, x.T.contiguous(), x[0] * True), (x,), (x.T,))


def test_shapes_and_layouts_are_kinds_of_calls() -> None:
    x = pc.randn(2, 3, 4)
    views = (x, x.permute(2, 0, 1), x[:, ::2], x[:1].expand(5, 3, 4), x[0, 0, 0], x[:, :0])
    agree(lambda x: x.relu().sum(0) if x.ndim else x * 2, *((view,) for view in views))


def test_overlapping_arguments() -> None:
    def function(x: Any, y: Any) -> Any:
        x.add_(1)
        return y * 2

    compiled = frozen(function)
    for overlaps in (False, False, False, True, True, True, False):
        memories = [pc.arange(8.0) for _ in range(2)]
        pairs = [(m[:3], m[1:4] if overlaps else m[4:7]) for m in memories]
        assert_same(compiled(*pairs[0]), function(*pairs[1]))
        assert_same(*memories)


def test_shapes_that_depend_on_values() -> None:
    for function in (
        lambda x: x.nonzero().sum(0),
        lambda x: x[x > 0] * 2,
        lambda x: pc.masked_select(x, x > 0).exp().sum(),
        lambda x: pc.unique(x),
    ):
        agree(function, *((pc.randn(7).round(),) for _ in range(4)))


def test_random_numbers() -> None:
    def function(x: Any) -> Any:
        return pc.dropout(x, 0.5, True) + pc.randn(100), pc.randperm(5)

    compiled = frozen(function)
    for k in range(5):
        pc.manual_seed(k)
        got = [*compiled(pc.ones(100)), pc.rand(1)]
        pc.manual_seed(k)
        assert_same(got, [*function(pc.ones(100)), pc.rand(1)])


def test_conjugated_arguments() -> None:
    x = pc.randn(3, dtype=pc.complex64)
    agree(lambda x: (x * 2, x.conj() + 1, x.real * x.imag), (x,), (x.conj(),))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.view(pc.int32) + 1,
        lambda x: (x * 2).view(pc.int32) + 1,
        lambda x: x.view(pc.int32).fill_(1),
    ],
)
def test_views_of_another_dtype(function: Callable[..., Any]) -> None:
    compiled = frozen(function)
    with pytest.raises(NotImplementedError, match=r"compile: a view .*dtype"):
        repeat(lambda: compiled(pc.zeros(3)))


def test_strided_views_of_what_is_outside_of_an_argument() -> None:
    compiled = frozen(lambda x: x.as_strided((2, 2), (1, 2), 1) * 1)
    x = pc.arange(12.0).view(4, 3)[:1]
    with pytest.raises(RuntimeError, match="reaches outside of its memory"):
        repeat(lambda: compiled(x))


def test_offsets_count_from_the_start_of_memory() -> None:
    compiled = frozen(lambda x: x.as_strided((2,), (1,), 1) * 1)
    memory = pc.arange(5.0)
    for first in (0, 1, 1, 1):
        assert_same(compiled(memory[first : first + 2]), T([1.0, 2.0]))
    for _ in range(2):  # no graph has what lies before or behind an argument
        with pytest.raises(RuntimeError, match="reaches outside of its memory"):
            repeat(lambda: compiled(memory[2:4]))


def test_kinds_of_many_numbers() -> None:
    compiled = frozen(lambda x, s: x * s)
    for k in range(50):
        assert_same(compiled(T([2.0]), k), T([2.0 * k]))


def test_results_are_kept_by_the_caller() -> None:
    compiled = frozen(lambda x: x * 2)
    results = [compiled(T([float(k)])) for k in range(6)]
    assert [r.item() for r in results] == [0, 2, 4, 6, 8, 10]


def test_results_that_are_arguments_of_the_next_call() -> None:
    compiled = frozen(lambda x: x * 2 + 1)
    x, number = T([1.0]), 1.0
    for _ in range(6):
        x, number = compiled(x), 2 * number + 1
        assert x.item() == number


def test_threads() -> None:
    w = T([2.0])
    compiled = frozen(lambda x: (x * w).sin().sum())
    problems: list[Any] = []

    def run(i: int) -> None:
        try:
            for k in range(100):
                x = T([i * 1000.0 + k] * (1 + k % 3))
                assert_same(compiled(x), (x * w).sin().sum())
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_the_number_of_threads_stays() -> None:
    before = pc.get_num_threads()
    pc.set_num_threads(2)
    try:
        threads = [
            threading.Thread(
                target=lambda: [frozen(lambda x: x * 2)(pc.ones(9)) for _ in range(40)]
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert pc.get_num_threads() == 2
    finally:
        pc.set_num_threads(before)


def test_exceptions_of_the_function() -> None:
    fails = [True]

    def function(x: Any) -> Any:
        y = x * 2
        if fails[0]:
            raise KeyError("mine")
        return y

    compiled = frozen(function)
    for _ in range(6):
        with pytest.raises(KeyError, match="mine"):
            compiled(T([1.0]))
    fails[0] = False
    for _ in range(4):
        assert_same(compiled(T([1.0])), T([2.0]))


def test_errors_of_operators() -> None:
    table = pc.ones(3, 2)
    compiled = frozen(lambda i: table[i])
    for _ in range(3):
        compiled(T([0, 1]))
    for _ in range(3):
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            compiled(T([7, 1]))
        assert_same(compiled(T([0, 2])), pc.ones(2, 2))


@contextlib.contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Send this process the signal of Ctrl-C when it has been in the block for some seconds."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def test_interrupt() -> None:
    x = pc.randn(200, 200)

    def function(x: Any) -> Any:
        for _ in range(60):
            x = x @ x * 1e-3
        return x

    compiled = frozen(function)
    expected = [compiled(x) for _ in range(3)][-1]
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.02):
        repeat(lambda: compiled(x), 10_000)
    assert_same(compiled(x), expected)


@pytest.mark.parametrize("is_frozen_before", [False, True])
def test_compiled_in_compiled(is_frozen_before: bool) -> None:
    w = T([2.0])
    inner = frozen(lambda x: x * w)
    for _ in range(3 * is_frozen_before):
        inner(T([3.0]))
    outer = frozen(lambda x: inner(x) + 1)
    for k in range(5):
        assert_same(outer(T([3.0 + k])), T([7.0 + 2 * k]))
        assert_same(inner(T([3.0 + k])), T([6.0 + 2 * k]))


def test_recursion() -> None:
    def function(x: Any, n: int) -> Any:
        return x if n == 0 else compiled(x * 2, n - 1)

    compiled = frozen(function)
    for _ in range(4):
        assert_same(compiled(T([1.0]), 3), T([8.0]))


def test_methods() -> None:
    class Scale:
        def __init__(self, w: float) -> None:
            self.w = T([w])

        @compile(frozen=True)
        def step(self, x: Any) -> Any:
            return self.w * x

    one, other = Scale(2.0), Scale(5.0)
    for _ in range(4):
        assert_same(one.step(T([3.0])), T([6.0]))
        assert_same(other.step(T([3.0])), T([15.0]))


def test_partial_functions() -> None:
    agree(functools.partial(lambda a, x: x + a, T([1.0])), (T([2.0]),))


def test_modules() -> None:
    module = nn.Linear(2, 3)
    compiled = frozen(module)
    assert [p.data_ptr() for p in compiled.parameters()] == [
        p.data_ptr() for p in module.parameters()
    ]
    assert compiled._orig_mod is module
    assert not compiled.eval().training
    assert not module.training
    assert list(compiled.state_dict()) in (
        ["weight", "bias"],
        ["_orig_mod.weight", "_orig_mod.bias"],
    )


def test_transforms() -> None:
    x = pc.randn(3, 2)

    def square(x: Any) -> Any:
        return (x * x).sum()

    compiled = frozen(square)
    for _ in range(4):
        assert_same(vmap(compiled)(x), vmap(square)(x))
        assert_same(grad(compiled)(x), 2 * x)
    agree(lambda x: grad(square)(x), (x,))
    agree(lambda x: vmap(square)(x), (x,))


def test_arrays() -> None:
    compiled = frozen(lambda x, a: x + pc.from_numpy(a))
    with pytest.raises(TypeError, match="an argument of the type ndarray"):
        compiled(T([1.0]), np.ones(1, np.float32))


def test_sparse_arguments() -> None:
    compiled = frozen(lambda x: x.to_dense() * 2)
    x = pc.eye(3).to_sparse()
    try:
        for _ in range(3):
            assert_same(compiled(x), pc.eye(3) * 2)
    except (TypeError, NotImplementedError, ValueError) as error:
        assert "sparse" in str(error).lower()


def test_many_nodes() -> None:
    def function(x: Any) -> Any:
        for _ in range(2000):
            x = x * 1.0001
        return x

    agree(function, (pc.ones(3),))


def test_modes_of_gradients() -> None:
    module = nn.Linear(2, 1)
    compiled = frozen(module)
    x = pc.ones(1, 2)
    for _ in range(4):
        assert compiled(x).requires_grad
        with no_grad():
            assert not compiled(x).requires_grad
        assert compiled(x.clone().requires_grad_()).requires_grad


def test_default_dtype() -> None:
    compiled = frozen(lambda: pc.zeros(2) + 1)
    for _ in range(3):
        compiled()
    pc.set_default_dtype(pc.float64)
    try:
        assert compiled().dtype == pc.float64
    finally:
        pc.set_default_dtype(pc.float32)


def test_default_device() -> None:
    compiled = frozen(lambda: pc.zeros(2) + 1)
    for _ in range(3):
        compiled()
    pc.set_default_device("meta")
    try:
        assert str(compiled().device) == "meta"
    finally:
        pc.set_default_device("cpu")


def test_a_backward_pass_on_another_thread() -> None:
    w = nn.Parameter(T([2.0]))
    compiled = frozen(lambda x: (w * w * x).sum())
    for k in range(5):
        w.grad = None
        loss = compiled(T([1.0 + k]))
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
        assert_same(w.grad, T([4.0 + 4 * k]))


def test_arguments_of_the_captures_are_freed() -> None:
    compiled = frozen(lambda x: x * 2)
    references = []
    for _ in range(5):
        x = pc.ones(100)
        references.append(weakref.ref(x))
        compiled(x)
    del x
    gc.collect()
    assert [reference() for reference in references] == [None] * 5


def test_two_functions_that_call_each_other_on_two_threads() -> None:
    functions: dict[str, Any] = {}
    functions["a"] = frozen(lambda x, n: x if n == 0 else functions["b"](x * 2, n - 1))
    functions["b"] = frozen(lambda x, n: x if n == 0 else functions["a"](x * 3, n - 1))

    def run(name: str) -> None:
        for i in range(50):
            functions[name](T([1.0 + i]), 2 + i % 3)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_graphs_of_the_programs() -> None:
    module = nn.Linear(2, 1)
    compiled = frozen(module)
    assert compiled.graphs() == []
    x = pc.ones(3, 2)
    for _ in range(3):
        compiled(x).sum()
        with no_grad():
            expected = compiled(x)
    forward, backward, alone = compiled.graphs()
    for graph in (forward, alone):
        assert [node.op for node in graph.nodes] == ["linear"]
        tensors = [weight.shape for weight in graph.weights]
        assert tensors == [tuple(p.shape) for p in module.parameters()]
    assert len(backward.outputs) == 2
    weights = {w.name: p for w, p in zip(alone.weights, module.parameters(), strict=True)}
    with no_grad():
        assert_same(run_graph(alone, [x], weights), [expected])
    alone.nodes.clear()
    assert len(compiled.graphs()[2].nodes) == 1
