"""Files with free sizes: what `load` and plait/run.h make of them at each size."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_autograd
import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_graph import Dim, Graph, cond, export, load
from plait_graph.interpreter import run_graph
from plait_graph.passes import fold_constants, infer_shapes, merge_equal_nodes, remove_dead_nodes

sys.path.insert(0, str(Path(__file__).parent))
import c_interface as c
from same_bits import assert_same
from test_compile_sizes import CASES, mlp

F = nn.functional


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][2] is not True])
def test_models_at_other_sizes(name: str, tmp_path: Path) -> None:
    make, batch, dynamic, recorded, others = CASES[name]
    pc.manual_seed(0)
    model = make().eval()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    export(model, batch(*recorded[-1]), tmp_path / "model.safetensors", dynamic=dynamic)
    # weights that NumPy sees are not packed, so that kernels may be others
    assert all((tensor == before[key]).all().item() for key, tensor in model.state_dict().items())
    loaded = load(tmp_path / "model.safetensors")
    assert loaded.graph.sizes[next(iter(loaded.graph.sizes))].min == 1
    ones = tuple(1 if i == 0 else n for i, n in enumerate(recorded[0]))
    with plait_autograd.no_grad():
        for sizes in (*recorded, *others, ones):
            args = batch(*sizes)
            assert_same(loaded(*args), model(*args))
            assert_same(run_graph(loaded.graph, args, loaded.weights), [model(*args)])


def step_of(model: Any) -> Any:
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def batch(n: int) -> tuple[Any, Any]:
    return pc.randn(n, 4), pc.randint(0, 3, (n,))


@pytest.fixture
def step_file(tmp_path: Path) -> tuple[Path, Any, Any]:
    """Return a file with a step of training for batches of any size, the step and its model."""
    pc.manual_seed(0)
    model = mlp()
    step = step_of(model)
    path = tmp_path / "step.safetensors"
    export(step, batch(16), path, training=True, dynamic={"x": {0: "n"}, "y": {0: Dim("n")}})
    return path, step, model


SIZES = (16, 5, 2, 16, 33, 7)


def test_a_step_of_training(step_file: tuple[Path, Any, Any]) -> None:
    path, step, model = step_file
    loaded = load(path)
    for n in SIZES:
        x, y = batch(n)
        assert_same(loaded(x, y), step(x, y))
    for name, tensor in model.state_dict().items():
        assert_same(loaded.weights[name], tensor)


def test_a_step_of_training_in_c(step_file: tuple[Path, Any, Any], libraries: str) -> None:
    path, step, _ = step_file
    library = c.load(plait_abi.paths("plait_graph")["libplait_run.so"])
    run = c.Run(library, str(path), libraries)
    at = run.find(c.NUMBER, "n")
    assert run.number(at) == 16 and run.get(c.INPUT, 0).shape[0] == 16
    try:
        for i, n in enumerate(SIZES):
            x, y = batch(n)
            if i % 2:
                run.set_number(at, n)
                assert run.get(c.INPUT, 0).shape[0] == n
            run.set(c.INPUT, 0, x.numpy().tobytes())
            run.set(c.INPUT, 1, y.numpy().tobytes())
            run.execute()
            assert run.number(at) == n
            assert np.frombuffer(run.read(c.OUTPUT, 0)[2], np.float32) == step(x, y).item()
        assert run.number(run.find(c.NUMBER, "adamw.0.step")) == len(SIZES) + 4
        run.save(str(path))
    finally:
        run.close()
    x, y = batch(9)
    assert_same(load(path)(x, y), step(x, y))


def test_errors_in_c(step_file: tuple[Path, Any, Any], libraries: str) -> None:
    library = c.load(plait_abi.paths("plait_graph")["libplait_run.so"])
    run = c.Run(library, str(step_file[0]), libraries)
    x, y = (tensor.numpy().tobytes() for tensor in batch(5))
    try:
        for value, message in [(1, "the graph is for 2 to"), (2.5, "integer"), (2.0**40, "for 2")]:
            with pytest.raises(c.RunError, match=message):
                run.set_number(run.find(c.NUMBER, "n"), value)
        with pytest.raises(c.RunError, match="bytes; got 81"):
            run.set(c.INPUT, 0, x + b"\0")
        run.set(c.INPUT, 0, x)
        run.set(c.INPUT, 1, y + y)  # a batch of 10 for the second input
        with pytest.raises(c.RunError, match='input "x" was not set'):
            run.execute()
        run.set(c.INPUT, 0, x)
        with pytest.raises(c.RunError, match='input "y" was not set'):
            run.execute()
        run.set(c.INPUT, 1, y)
        run.execute()
        small = run.memory()
        run.set_number(run.find(c.NUMBER, "n"), 1000)
        assert run.memory() > small
        assert not run.get(c.INPUT, 0).data and not run.get(c.OUTPUT, 0).data
    finally:
        run.close()


def test_the_command(plait_run: Path, tmp_path: Path, libraries: str) -> None:
    path = tmp_path / "sum.safetensors"
    dynamic = {"x": {0: Dim("n", max=9), 1: "m"}, "y": {1: "m"}}
    export(lambda x, y: x * 2 + y, (pc.ones(4, 3), pc.ones(1, 3)), path, dynamic=dynamic)
    np.save(tmp_path / "x.npy", np.ones((2, 5), np.float32))
    np.save(tmp_path / "y.npy", np.ones((1, 5), np.float32))
    np.save(tmp_path / "wide.npy", np.ones((1, 6), np.float32))
    np.save(tmp_path / "long.npy", np.ones((1, 3, 1), np.float32))

    def run(*more: str) -> tuple[str, str]:
        command = [plait_run, path, *more, "--libraries", libraries]
        result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=240)
        return result.stdout, result.stderr

    assert "input x: float32[4, 3]" in run()[0] and "number n: 4" in run()[0]
    output, error = run("x.npy", "y.npy", "--number", "n=2", "--number", "m=5")
    assert "output: float32[2, 5] = 3 3" in output, error
    assert "output: float32[2, 5] = 3 3" in run("x.npy", "y.npy")[0]
    assert "is float32[2, 5]; x is float32[2, 6]" in run("x.npy", "wide.npy")[1]
    assert "the graph is for 1 to 9" in run("--number", "n=10")[1]
    assert "long.npy is float32[1, 3, 1]; y is" in run("y=long.npy")[1]
    export(lambda x: x + 1, (pc.ones(4, 5),), path, dynamic=[{0: "n"}])
    output, error = run("x.npy")
    assert "output: float32[2, 5] = 2 2" in output, error


def test_what_the_function_asks_is_a_guard(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        n = x.shape[0]
        if n % 2:
            return x
        return x.view(n // 2, 2, -1).sum(1) if n > 4 else x

    path = tmp_path / "pairs.safetensors"
    export(function, (pc.ones(8, 3),), path, dynamic={"x": {0: "n"}})
    loaded = load(path)
    assert set(loaded.graph.guards) == {"n % 2 == 0", "n > 4"}
    for n in (6, 20):
        assert_same(loaded(pc.ones(n, 3)), function(pc.ones(n, 3)))
    for n in (4, 7):
        with pytest.raises(ValueError, match="the graph is for sizes with n"):
            loaded(pc.ones(n, 3))


def test_sizes_in_steps(tmp_path: Path) -> None:
    path = tmp_path / "heads.safetensors"
    export(lambda x: x.view(-1, 4, 3).sum(1), (pc.ones(16, 3),), path, dynamic=[{0: "n"}])
    loaded = load(path)
    assert loaded.graph.guards == ["n % 4 == 0"]
    assert loaded(pc.ones(8, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match="n % 4 == 0; got n = 6"):
        loaded(pc.ones(6, 3))


def test_shapes_of_inputs_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "sum.safetensors"
    dynamic = ({0: Dim("n", min=2, max=9)}, {1: "n"})
    export(lambda x, y: x.sum(0) + y.sum(), (pc.ones(4, 3), pc.ones(2, 4)), path, dynamic=dynamic)
    loaded = load(path)
    assert loaded(pc.ones(9, 3), pc.ones(2, 9)).tolist() == [27.0] * 3
    for x, y, message in [
        (pc.ones(5, 3), pc.ones(2, 4), r"y has the shape \(2, 4\); the graph is for \[2, n\], n ="),
        (pc.ones(5, 4), pc.ones(2, 5), r"x has the shape \(5, 4\)"),
        (pc.ones(5), pc.ones(2, 5), r"x has the shape \(5,\)"),
        (pc.ones(10, 3), pc.ones(2, 10), "the size n is 10; the graph is for 2 to 9"),
        (pc.ones(5, 3), pc.ones(2, 5).long(), "float32"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=message):
            loaded(x, y)
    with pytest.raises(ValueError, match="2 inputs, got 1"):
        loaded(pc.ones(5, 3))


@pytest.mark.parametrize(
    ("function", "dynamic", "message"),
    [
        (lambda x: x * int(x.shape[0]), [{0: "n"}], r"number of Python, as by int\(\).*py:\d"),
        (lambda x: sum(x[i] for i in range(x.shape[0])), [{0: "n"}], "other"),
        (lambda x: x.view(8, 3), [{0: "n"}], "n cannot be free"),
        (lambda x: pc.cat([x[:1] for _ in range(x.shape[0])]), [{0: "n"}], "calls are others"),
        (lambda x: x + pc.ones(8, 3), [{0: "n"}], "n cannot be free"),
        (
            lambda x: cond(x.sum() > 0, lambda x: x * 2, lambda x: x, (x,)),
            [{0: "n"}],
            "has regions, whose sizes are fixed",
        ),
        (lambda x: x * 2, [{0: Dim("n", min=8, max=8)}], "no other value"),
        (lambda x: x * 2, [{0: Dim("n", min=9)}], "out of its range"),
        (lambda x: x[2:] * 2 if x.shape[0] > 2 else x, [{0: Dim("n", min=1)}], "exclude"),
        (lambda x: x * 2, True, "must name"),
        (lambda x: x * 2, [None], "names no dimension"),
        (lambda x: x * 2, [{0: "n", 1: "n"}], "is 8 in one argument and 3"),
    ],
)
def test_what_cannot_be_free(function: Any, dynamic: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises((RuntimeError, ValueError), match=message):
        export(function, (pc.ones(8, 3),), tmp_path / "none.safetensors", dynamic=dynamic)
    assert not list(tmp_path.iterdir())


def test_state_is_as_it_was(tmp_path: Path) -> None:
    model = mlp()
    step = step_of(model)
    args = batch(8)
    for _ in range(2):
        step(*args)
    export(step, args, tmp_path / "fixed.safetensors", training=True)
    fixed = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = pc.get_rng_state()
    model.load_state_dict({name: tensor.clone() for name, tensor in fixed.items()})
    again = step_of(model)
    for _ in range(3):
        again(*args)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(fixed)
    other = step_of(model)
    other(*args)
    export(other, args, tmp_path / "free.safetensors", training=True, dynamic=({0: "n"}, {0: "n"}))
    # the calls at the sizes of the arguments are steps, the others are none
    assert_same(model.state_dict(), state)
    assert_same(pc.get_rng_state(), random)


def test_passes_keep_sizes(tmp_path: Path) -> None:
    weight = pc.randn(3)

    def function(x: Any) -> Any:
        one, two = x.view(x.shape[0] * 3), x.view(x.shape[0] * 3)
        _ = one.exp()
        return one + two, pc.arange(x.shape[0]) * weight.exp().sum()

    path = tmp_path / "model.safetensors"
    export(function, (pc.ones(8, 3),), path, dynamic={"x": {0: "n"}})
    loaded = load(path)
    graph = loaded.graph
    assert [node.op for node in graph.nodes].count("view") == 1
    graph = remove_dead_nodes(merge_equal_nodes(fold_constants(graph, loaded.weights)))
    typed = infer_shapes(graph)
    shapes = {value.name: value.shape for value in typed.values()}
    assert shapes["output.0"] == ("n * 3",) and shapes["output.1"] == ("n",)
    again = Graph.from_json(typed.to_json())
    assert str(again) == str(graph) and again.sizes == loaded.graph.sizes
    for n in (3, 8):
        x = pc.randn(n, 3)
        assert_same(run_graph(again, [x], loaded.weights), list(function(x)))
    assert "float32[n, 3]" in graph.picture()


def test_threads_run_different_sizes(tmp_path: Path) -> None:
    import threading

    path = tmp_path / "model.safetensors"
    weight = pc.randn(3, 4)
    export(lambda x: (x @ weight).relu(), (pc.ones(8, 3),), path, dynamic=[{0: "n"}])
    loaded = load(path)
    wrong: list[int] = []

    def work(first: int) -> None:
        for i in range(60):
            n = 1 + (first + i) % 20  # more than the programs that are kept
            x = pc.full((n, 3), float(n))
            if not (loaded(x) == (x @ weight).relu()).all().item():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(i * 7,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_expected_shapes_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    export(lambda x: x[1:] * 2, (pc.ones(8, 3),), path, dynamic=[{0: "n"}])
    text = load(path).text
    form = json.loads(text)
    assert form["shapes"]["output"] == ["n - 1", 3]
    form["shapes"]["output"] = ["(n - 1) // 7 * 7", 3]
    from plait_graph._graph import SizedProgram

    program = SizedProgram(json.dumps(form))
    program.bind([])
    with pytest.raises(ValueError, match="has the shape"):
        program.run([pc.ones(9, 3)])


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return c.load(plait_abi.paths("plait_graph")["libplait_run.so"])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("layout", ["rows", "columns", "expanded", "diagonal", "transposed"])
def test_an_argument_of_any_strides_is_exported_or_refused_with_a_text(
    layout: str, dim: int, tmp_path: Path
) -> None:
    base = pc.randn(8, 10)
    x = {
        "rows": base[::2],
        "columns": base[:, :6],
        "expanded": pc.randn(1, 5).expand(4, 5),
        "diagonal": base.as_strided((4, 5), (11, 1)),
        "transposed": base.T,
    }[layout]
    dynamic = {"x": {dim: "n"}}
    if layout in ("expanded", "transposed"):
        export(lambda x: x * 2, (x,), tmp_path / "file", dynamic=dynamic)
        assert_same(load(tmp_path / "file")(x), x * 2)
    else:
        with pytest.raises(RuntimeError, match=r"strides \(.*, with gaps, .* x\.contiguous\(\)"):
            export(lambda x: x * 2, (x,), tmp_path / "file", dynamic=dynamic)


def test_layouts_of_arguments_with_free_sizes() -> None:
    """A dimension of one element may have any stride; gaps are refused."""
    x = pc.randn(4, 3, 8, 8)[:, 0:1].permute(1, 0, 2, 3)  # (1, 4, 8, 8), of which one is first
    odd = pc.randn(4, 8, 8).as_strided((1, 4, 8, 8), (1, 64, 8, 1))
    for tensor in (x.contiguous(), odd):
        file = export(lambda x: x * 2, (tensor,), dynamic={0: {0: "n", 2: "h"}})
        other = pc.randn(3, 4, 5, 8)
        assert pc.equal(file(other), other * 2)
    with pytest.raises(RuntimeError, match=r"shape \(4, 5\) has the strides \(10, 2\), with gaps"):
        export(lambda x: x * 2, (pc.randn(4, 10)[:, ::2],), dynamic={0: {0: "n"}})


def test_an_example_of_the_largest_size() -> None:
    """There a slice of a table is the table itself, and no call."""
    table = pc.randn(6, 2)
    x = pc.randn(6, 2)

    def function(x: Any) -> Any:
        return x + table[: x.shape[0]]

    run = export(function, (x,), dynamic={"x": {0: Dim("n", max=6)}})
    for n in (1, 2, 5, 6):
        assert_same(run(x[:n]), function(x[:n]))
    with pytest.raises(ValueError, match="to 6"):
        run(pc.ones(7, 2))
    with pytest.raises(RuntimeError, match=r"write Dim\('n', max=\.\.\.\)"):
        export(function, (x,), dynamic={"x": {0: "n"}})


def test_plait_run_takes_several_sizes_from_arrays(
    plait_run: Path, libraries: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    dynamic = [{0: "a", 1: "b"}, {0: "b", 1: "c"}]
    export(lambda x, y: x @ y, (pc.ones(3, 4), pc.ones(4, 5)), path, dynamic=dynamic)
    x, y = pc.randn(6, 2), pc.randn(2, 7)
    for name, tensor in (("x", x), ("y", y)):
        np.save(tmp_path / f"{name}.npy", tensor.numpy())
    words: list[object] = [plait_run, "--libraries", libraries, path, tmp_path / "x.npy"]
    result = tmp_path / "z.npy"
    subprocess.run([*words, tmp_path / "y.npy", "-o", result], check=True)
    np.testing.assert_array_equal(np.load(result), load(path)(x, y).numpy())
    done = subprocess.run([*words, tmp_path / "x.npy"], capture_output=True, text=True)
    assert done.returncode == 1 and "x.npy is float32[6, 2]; x is float32[6, 6]" in done.stderr
