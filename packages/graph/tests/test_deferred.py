"""Compiled functions whose Python runs at every call: what calls that wait must not change."""

from __future__ import annotations

import asyncio
import copy
import ctypes
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_autograd
import plait_core as pc
import plait_func
import plait_nn as nn
import plait_optim as optim
from plait_graph import Deferred, compile, export, load
from plait_nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same, bits

T = pc.tensor
CALLS = 4


def twice(make: Callable[[], Any], function: Callable[..., Any], calls: int = CALLS) -> Any:
    """Call a function several times, eagerly and compiled, with arguments that `make` returns.

    Return the compiled one. Results, arguments and random numbers must have the same bits.
    """
    compiled = compile(function)
    for k in range(calls):
        seen = []
        for each in (function, compiled):
            pc.manual_seed(k)
            args = make()
            result = each(*args)
            seen.append((bits(result), bits(args), pc.rand(1).item()))
        assert seen[0] == seen[1]
    return compiled


def small() -> Any:
    return pc.randn(3, 4), pc.randn(3, 4)


def test_python_runs_at_every_call() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(len(seen))
        y = x * 2 + len(seen)
        seen.append(y.sum().item())
        return y

    compiled = compile(f)
    for k in range(5):
        assert compiled(T([1.0, 2.0])).tolist() == [2.0 + 2 * k + 1, 4.0 + 2 * k + 1]
    assert seen[::2] == [0, 2, 4, 6, 8]


def test_a_graph_is_what_ran_together() -> None:
    compiled = twice(small, lambda x, y: ((x + y).relu() * 2).sum(1))
    assert [[node.op for node in graph.nodes] for graph in compiled.graphs()] == [
        ["add", "relu", "mul", "sum"]
    ]


def test_weights_that_layers_keep_are_not_computed_anew() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()

    def total(x: Any) -> Any:
        return model(x).sum() * 2

    compiled = compile(total)
    for turn in range(2):
        with plait_autograd.no_grad():
            for _ in range(6):
                x = pc.randn(2, 3, 5, 5)
                assert compiled(x).item() == total(x).item()
            if turn == 0:
                assert [[node.op for node in graph.nodes] for graph in compiled.graphs()] == [
                    ["conv2d_activation", "sum", "mul"]
                ]
            model[1].running_var.mul_(2)


def test_numbers_that_differ() -> None:
    rate = iter(range(100))

    def f(x: Any) -> Any:
        x.mul_(0.5 + next(rate))
        return (x + next(rate)) * 3.0

    compiled = compile(f)
    for k in range(10):
        x = T([1.0])
        assert compiled(x).item() == (0.5 + 2 * k + 2 * k + 1) * 3
    assert compiled._calls.size == 3
    assert len(compiled.graphs()) == 1


def test_branches_on_elements() -> None:
    def f(x: Any) -> Any:
        y = x.tanh() + 1
        if y.sum() > 2:
            y = y.exp() * 2
        return y - 1

    def make() -> Any:
        return (pc.randn(2),)

    twice(make, f, calls=12)


def test_values_that_are_kept() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = x.exp()
        if len(kept) % 3 == 0:
            kept.append(y)
        z = y * 2
        kept.append(z[1:])
        return z.sum()

    compiled = compile(f)
    for _ in range(6):
        compiled(T([0.0, 1.0]))
    expected = T([0.0, 1.0]).exp()
    for each in kept:
        assert_same(each, expected if each.numel() == 2 else (expected * 2)[1:])


def test_loops_of_different_lengths() -> None:
    lengths = iter([3, 3, 3, 5, 1, 4, 5, 5])

    def f(x: Any) -> Any:
        for _ in range(next(lengths)):
            x = (x * 1.5).sin()
        return x

    for n in [3, 3, 3, 5, 1, 4, 5, 5]:
        expected = T([1.0])
        for _ in range(n):
            expected = (expected * 1.5).sin()
        if n == 3 and "compiled" not in locals():
            compiled = compile(f)
        assert_same(compiled(T([1.0])), expected)


# What reads elements.


def through_memory(x: Any) -> Any:
    return (ctypes.c_float * x.numel()).from_address(x.data_ptr())[:]


def through_storage(x: Any) -> Any:
    return x.untyped_storage().tolist()


def through_shared_memory(x: Any) -> Any:
    return x.share_memory_().tolist()


READS: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist(),
    "print": repr,
    "numpy": lambda x: x.numpy().copy().tolist(),
    "array": lambda x: np.asarray(x).copy().tolist(),
    "buffer": lambda x: memoryview(x).tolist(),
    "dlpack": lambda x: np.from_dlpack(x).copy().tolist(),
    "data_ptr": through_memory,
    "storage": through_storage,
    "shared memory": through_shared_memory,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)).tolist(),
    "copy": lambda x: copy.deepcopy(x).tolist(),
    "bool": lambda x: bool(x[0] > 0),
    "index": lambda x: [1, 2, 3][x[0].abs().clamp(0, 2).long()],
    "float": lambda x: float(x[1]),
    "list": lambda x: [each.item() for each in x],
    "format": lambda x: f"{x[0]:.3f}",
    "one_hot": lambda x: F.one_hot(x.abs().long()).tolist(),
    "nonzero": lambda x: (x > 0).nonzero().tolist(),
    "mask": lambda x: x[x > 0].tolist(),
    "equal": lambda x: pc.equal(x, x + 0),
    "resize": lambda x: x.resize_(2).tolist(),
    "version": lambda x: x._version,
}


@pytest.mark.parametrize("name", READS)
def test_reads(name: str) -> None:
    read = READS[name]

    def f(x: Any) -> Any:
        y = (x * 2).add_(1)
        x.mul_(3)
        return read(y), read(x), y

    def make() -> Any:
        return (T([1.0, -2.0, 0.5]),)

    twice(make, f)


def test_saved_files(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        y = x.exp()
        pc.save({"y": y}, tmp_path / "y.plait")
        return y + 1

    def make() -> Any:
        return (pc.randn(5),)

    compiled = compile(f)
    for _ in range(CALLS):
        (x,) = make()
        assert_same(compiled(x), x.exp() + 1)
        assert_same(pc.load(tmp_path / "y.plait")["y"], x.exp())


def test_memory_of_numpy_that_is_written() -> None:
    array = np.ones(3, np.float32)
    x = pc.from_numpy(array)

    def f() -> Any:
        array[:] = 1
        y = x * 2
        array[:] = 5
        return y + x

    compiled = compile(f)
    for _ in range(CALLS):
        assert compiled().tolist() == [7.0] * 3


def test_memory_that_is_replaced() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x * 2
        x.data = y
        x.add_(z.sum())
        z.set_(y)
        return x, z * 1

    twice(small, f)


def test_random_numbers() -> None:
    def f(x: Any) -> Any:
        y = F.dropout(x, 0.5) + pc.rand(4)
        state = pc.get_rng_state()
        z = pc.randn(4) * y
        pc.manual_seed(3)
        w = pc.rand_like(z)
        pc.set_rng_state(state)
        return y, z, w, pc.rand(2), state

    compiled = twice(small, lambda x, y: f(x))
    assert compiled.graphs()


def test_random_numbers_in_one_program() -> None:
    def f(x: Any, y: Any) -> Any:
        x = F.dropout(x, 0.5) * pc.rand(4)
        return F.dropout(x + y, 0.2).uniform_() + x

    compiled = twice(small, f)
    assert "native_dropout" in [node.op for node in compiled.graphs()[0].nodes]


def test_another_generator() -> None:
    def f(x: Any) -> Any:
        generator = pc.Generator()
        generator.manual_seed(5)
        return pc.rand(3, generator=generator) + x.sum()

    twice(lambda: (pc.randn(2),), f)


def test_the_default_dtype_changes() -> None:
    def f(x: Any) -> Any:
        y = x.long() / 2
        pc.set_default_dtype(pc.float64)
        try:
            z = x.long() / 2
        finally:
            pc.set_default_dtype(pc.float32)
        return y, z, y + z

    twice(lambda: (pc.randn(2),), f)


# Errors.


def test_an_index_out_of_range_is_an_error_of_its_call() -> None:
    table = pc.randn(4, 2)
    log = pc.zeros(1)

    def f(i: Any) -> Any:
        log.add_(1)
        y = F.embedding(i, table) * 2
        log.add_(10)
        return y

    compiled = compile(f)
    for _ in range(3):
        compiled(T([1, 2]))
    assert log.item() == 33
    for count in (34, 35):
        with pytest.raises(IndexError, match="embedding") as error:
            compiled(T([1, 4]))
        assert "deferred" not in str(error.value)
        assert log.item() == count
    assert_same(compiled(T([3, 0])), F.embedding(T([3, 0]), table) * 2)


def test_gradients_stay_as_they_are_after_an_error() -> None:
    model = nn.Linear(3, 4)

    def f(x: Any, y: Any) -> None:
        F.cross_entropy(model(x), y).backward()
        model.zero_grad()

    compiled = compile(f)
    for _ in range(3):
        compiled(pc.randn(2, 3), T([0, 3]))
    with pytest.raises(IndexError):
        compiled(pc.randn(2, 3), T([0, 4]))
    assert model.weight.grad is None


def test_another_error_that_depends_on_elements() -> None:
    log = pc.zeros(1)

    def f(weights: Any) -> Any:
        log.add_(1)
        y = pc.multinomial(weights, 1) + 1
        log.add_(10)
        return y

    compiled = compile(f)
    for _ in range(3):
        compiled(T([0.5, 0.5]))
    with pytest.raises(ValueError, match=r"multinomial.*deferred.*`.*f`"):
        compiled(T([0.5, -0.5]))
    assert log.item() == 34
    with pytest.raises(ValueError, match="multinomial") as error:  # such a call waits no more
        compiled(T([0.5, -0.5]))
    assert "deferred" not in str(error.value)
    assert log.item() == 35


def test_an_exception_of_the_function() -> None:
    log = pc.zeros(2)
    fails = iter([False] * 3 + [True, False])

    def f(x: Any) -> Any:
        y = x + 1
        log.add_(y)
        if next(fails):
            raise KeyError("mine")
        return y * 2

    compiled = compile(f)
    for _ in range(3):
        compiled(T([1.0, 2.0]))
    with pytest.raises(KeyError, match="mine"):
        compiled(T([1.0, 2.0]))
    assert log.tolist() == [8.0, 12.0]
    assert compiled(T([1.0, 2.0])).tolist() == [4.0, 6.0]


def test_exceptions_that_the_function_catches() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x + y
        try:
            z.matmul(y)
        except ValueError as error:
            z = z * len(str(error))
        return z.sum()

    twice(small, f)


def test_a_tensor_that_is_read_only() -> None:
    array = np.ones(2, np.float32)
    array.flags.writeable = False
    x = pc.from_numpy(array)

    def f(y: Any) -> Any:
        with pytest.raises(ValueError, match="read-only"):
            x.add_(y)
        return y + 1

    twice(lambda: (pc.randn(2),), f)


# Gradients.


def test_versions() -> None:
    def f(x: Any, w: Any) -> Any:
        y = (x * w).relu_()
        y.data.add_(1)
        v = y._version, x._version
        y.add_(1)
        return y, v, y._version

    def make() -> Any:
        return pc.randn(3), pc.randn(3)

    twice(make, f)


def test_a_value_of_the_derivative_that_is_written() -> None:
    def f(x: Any) -> Any:
        y = x.exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        z = x.exp()
        z.sum().backward()
        return z

    for _ in range(3):
        twice(lambda: (pc.randn(3, requires_grad=True),), f)


def test_backward_after_the_call() -> None:
    compiled = compile(lambda x, w: (x * w).tanh().sum())
    for _ in range(CALLS):
        x, w = pc.randn(3), pc.randn(3, requires_grad=True)
        compiled(x, w).backward()
        assert_same(w.grad, plait_autograd.grad((x * w).tanh().sum(), w)[0])


def test_hooks_and_retained_graphs() -> None:
    def f(x: Any) -> Any:
        seen: list[Any] = []
        y = x.sin()
        y.register_hook(lambda g: seen.append(g) or g * 2)
        y.retain_grad()
        z = (y * y).sum()
        z.backward(retain_graph=True)
        z.backward()
        (again,) = plait_autograd.grad(x.exp().sum(), x, create_graph=True)
        (second,) = plait_autograd.grad(again.pow(2).sum(), x)
        return x.grad, y.grad, seen, again.detach(), second

    twice(lambda: (pc.randn(3, requires_grad=True),), f)


def test_anomalies() -> None:
    def f(x: Any) -> Any:
        with warnings.catch_warnings(), plait_autograd.detect_anomaly():
            warnings.simplefilter("ignore")
            y = (x - x).sqrt().sum() * 0
            with pytest.raises(RuntimeError, match="NaN"):
                y.backward()
        return y

    twice(lambda: (pc.randn(3, requires_grad=True),), f)


def test_functions_of_python() -> None:
    class Double(plait_autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 + ctx.saved_tensors[0].sum().item()

    def f(x: Any) -> Any:
        Double.apply(x.sin()).sum().backward()
        return x.grad

    twice(lambda: (pc.randn(3, requires_grad=True),), f)


# Other modes.


def test_calls_in_each_other() -> None:
    inner = compile(lambda x: (x * 2).relu())
    frozen = compile(lambda x: x.exp() + 1, frozen=True)
    compiled = twice(small, lambda x, y: inner(x) + frozen(y) * inner(y))
    assert "exp" in compiled.graphs()[0].to_json()
    outer = compile(lambda x: inner(x) - 1, frozen=True)
    for _ in range(CALLS):
        assert outer(T([1.0])).item() == 1.0
    assert [node.op for node in outer.graphs()[0].nodes] == ["mul", "relu", "sub"]


def test_a_file_of_a_compiled_module(tmp_path: Path) -> None:
    model = compile(nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval())
    x = pc.randn(2, 3)
    for _ in range(3):
        expected = model(x)
    export(model, (x,), tmp_path / "model.safetensors")
    assert_same(load(tmp_path / "model.safetensors")(x), expected)


def test_transforms() -> None:
    def f(x: Any, y: Any) -> Any:
        z = plait_func.vmap(lambda a, b: (a * b).sum())(x, y)
        return z, plait_func.grad(lambda a: (a * y).sin().sum())(x)

    twice(small, f)
    inner = compile(lambda a: (a.sin() * 2).sum())
    for _ in range(CALLS):
        x, _y = small()
        assert_same(plait_func.vmap(inner)(x), (x.sin() * 2).sum(1))
        assert_same(plait_func.grad(inner)(x), plait_func.grad(lambda a: (a.sin() * 2).sum())(x))
        out, tangent = plait_func.jvp(inner, (x,), (x,))
        expected = plait_func.jvp(lambda a: (a.sin() * 2).sum(), (x,), (x,))
        assert_same((out, tangent), expected)


def test_sparse_tensors() -> None:
    twice(small, lambda x, y: (x.relu().to_sparse() @ y.T).relu() + 1)


def test_sparse_gradients() -> None:
    """The element that a sparse gradient has for its blanks is filled by a call that waits."""

    def trained(run: Any) -> Any:
        pc.manual_seed(0)
        table = nn.Embedding(10, 3, sparse=True)
        optimizer = optim.SGD(table.parameters(), lr=0.1)

        def step(rows: Any) -> Any:
            optimizer.zero_grad()
            loss = table(rows).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        step = run(step)
        return [step(T([k, 1, k])) for k in range(4)], table.weight

    assert_same(trained(compile), trained(lambda step: step))


def test_kernels_of_python_run_in_time() -> None:
    order: list[str] = []

    def kernel(x: Any, out: Any) -> Any:
        order.append("kernel")
        return NotImplemented

    def f(x: Any) -> Any:
        y = (x * 2).erfinv()
        order.append("after")
        return y * 2

    compiled = compile(f)
    compiled(T([0.1]))
    order.clear()
    with plait_abi.kernel("erfinv", kernel):
        for _ in range(CALLS):
            assert_same(compiled(T([0.1])), T([0.2]).erfinv() * 2)
    assert order == ["kernel", "after", "kernel"] * CALLS


def test_generators_and_coroutines() -> None:
    @compile
    def count(x: Any) -> Iterator[Any]:
        for k in range(3):
            x = x * 2 + k
            yield x

    @compile
    async def later(x: Any) -> Any:
        y = x + 1
        await asyncio.sleep(0)
        return y * 2

    for _ in range(CALLS):
        assert [each.item() for each in count(T([1.0]))] == [2.0, 5.0, 12.0]
        assert asyncio.run(later(T([1.0]))).item() == 4.0


def test_a_function_within_itself() -> None:
    @compile
    def fold(x: Any, n: int) -> Any:
        return x + 1 if n == 0 else fold(x * 2, n - 1) + n

    for _ in range(CALLS):
        assert fold(T([1.0]), 10).item() == 2.0**10 + 1 + 10 * 11 / 2


# Threads and processes.


def test_other_threads_see_what_waits() -> None:
    held = pc.zeros(3)
    view = held[1:]

    def f(x: Any) -> Any:
        y = x * 2
        held.add_(y)
        seen: list[Any] = []

        def look() -> None:
            seen.extend([(y + 1).tolist(), (view * 1).tolist(), y.view(3, 1)[1].tolist()])

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return seen, y

    compiled = compile(f)
    for k in range(CALLS):
        seen, y = compiled(T([1.0, 2.0, 3.0]))
        assert seen == [[3.0, 5.0, 7.0], [4.0 * (k + 1), 6.0 * (k + 1)], [4.0]]
        assert y.tolist() == [2.0, 4.0, 6.0]


def test_threads_that_call_one_function() -> None:
    compiled = compile(lambda x, k: ((x + k).sin() * 2).sum(0))
    errors: list[Any] = []

    def work(seed: int) -> None:
        for k in range(30):
            x = T([[1.0 * seed, k], [3.0, 4.0]])
            if bits(compiled(x, k)) != bits(((x + k).sin() * 2).sum(0)):
                errors.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_in_the_function() -> None:
    def f(x: Any) -> Any:
        y = (x * 2).exp()
        pid = os.fork()
        if pid == 0:
            ok = y.tolist() == (x * 2).exp().tolist()
            os._exit(0 if ok else 1)
        _, status = os.waitpid(pid, 0)
        return y, status

    compiled = compile(f)
    for _ in range(CALLS):
        x = T([0.5, 1.0])
        y, status = compiled(x)
        assert status == 0
        assert_same(y, (x * 2).exp())


# Bounds.


def test_calls_that_never_repeat() -> None:
    sizes = iter(range(1, 10000))

    def f(x: Any) -> Any:
        return (x.expand(next(sizes)) * 2).sum()

    compiled = compile(f)
    for k in range(1, 200):
        assert compiled(T([1.0])).item() == 2.0 * k
    assert compiled._calls.size <= 200


def test_memory() -> None:
    def f(x: Any) -> Any:
        for _ in range(60):
            x = x * 1.01
        return x

    compiled = compile(f)
    x = pc.ones(1 << 20)  # 4 MiB
    for _ in range(CALLS):
        before = pc.memory_stats("cpu")["live_bytes"]
        pc.reset_peak_memory_stats("cpu")
        y = compiled(x)
        peak = pc.memory_stats("cpu")["peak_bytes"]
        assert peak - before < 100 << 20  # 64 MiB of results that wait, and those of eager calls
        assert_same(y, f(x))
        del y
    assert [len(graph.nodes) for graph in compiled.graphs()] == [60]


# Modules.


def test_modules() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    compiled = compile(model)
    assert isinstance(compiled, Deferred)
    assert compiled._orig_mod is model
    assert list(compiled.state_dict()) == list(model.state_dict())
    assert [p is q for p, q in zip(compiled.parameters(), model.parameters(), strict=True)]
    other = copy.deepcopy(compiled)
    optimizers = [optim.SGD(m.parameters(), lr=0.1) for m in (model, other)]
    for k in range(8):
        if k == 5:
            compiled.eval()
            other.eval()
        x = pc.randn(5, 3)
        results = []
        for m, optimizer in zip((model, other), optimizers, strict=True):
            optimizer.zero_grad()
            loss = m(x).square().sum()
            loss.backward()
            optimizer.step()
            results.append((bits(loss), bits(m.state_dict())))
        assert results[0] == results[1]
    assert other.graphs()


def test_methods_and_attributes() -> None:
    class Scale:
        def __init__(self) -> None:
            self.factor = 1.0

        @compile
        def run(self, x: Any) -> Any:
            """Scale."""
            self.factor *= 2
            return x * self.factor

    scale = Scale()
    assert [scale.run(T([1.0])).item() for _ in range(4)] == [2.0, 4.0, 8.0, 16.0]
    assert Scale.run.__doc__ == "Scale."
