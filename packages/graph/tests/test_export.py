"""Files that `export` writes: what `load` and a program in C make of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import plait_abi
import plait_autograd
import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_graph import export, load

sys.path.insert(0, str(Path(__file__).parent))
from same_bits import assert_same

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "native"


def make() -> Any:
    pc.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def step_of(model: Any, optimizer: Any = None) -> tuple[Any, Any]:
    optimizer = optimizer or optim.Adam(model.parameters(), lr=1e-2)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, optimizer


def batch() -> tuple[Any, Any]:
    return pc.randn(16, 4), pc.randint(0, 2, (16,))


def test_numbers_that_a_file_cannot_count(tmp_path: Path) -> None:
    model = make()
    step, _ = step_of(model, optim.NAdam(model.parameters()))
    with pytest.raises(NotImplementedError, match=r"computes nadam.0.mu_product for each step"):
        export(step, batch(), tmp_path / "step.safetensors", training=True)


def test_a_model_has_the_names_of_its_parameters(tmp_path: Path) -> None:
    model, x = make().eval(), batch()[0]
    export(model, (x,), tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    names = {*dict(model.named_parameters()), *dict(model.named_buffers())}
    assert set(loaded.weights) == names - {"1.num_batches_tracked"}
    assert loaded(x).tolist() == model(x).tolist()
    graph = json.loads(loaded.text)
    assert [entry["name"] for entry in graph["inputs"]] == ["input"]
    assert graph["outputs"] == ["%output"]


def test_weights_that_change_count(tmp_path: Path) -> None:
    model, x = make().eval(), batch()[0]
    export(model, (x,), tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    loaded(x)
    for function in (loaded.weights["0.weight"], model[0].weight):
        with plait_autograd.no_grad():
            function.mul_(2)
    assert loaded(x).tolist() == model(x).tolist()


def test_a_step_goes_on_where_python_left_it(tmp_path: Path) -> None:
    model = make()
    step, optimizer = step_of(model)
    x, y = batch()
    export(step, (x, y), tmp_path / "step.safetensors", training=True)
    loaded = load(tmp_path / "step.safetensors")
    for _ in range(4):
        x, y = batch()
        assert loaded(x, y).item() == step(x, y).item()
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        assert loaded.weights[name].tolist() == tensor.tolist(), name
    for name, p in model.named_parameters():
        kept = loaded.weights[f"adam.0.exp_avg.{name}"]
        assert kept.tolist() == optimizer.state[p]["exp_avg"].tolist()


def build(folder: Path, name: str) -> Any:
    """Compile a program of the guide, and return a function that runs it."""
    library = Path(plait_abi.paths("plait_graph")["libplait_run.so"])
    flags = ["-std=c11", "-O2", f"-I{plait_abi.paths('plait_graph')['include']}"]
    cc = os.environ.get("CC", "cc").split()
    source, program = EXAMPLES / f"{name}.c", folder / name
    subprocess.run([*cc, *flags, str(source), str(library), "-o", str(program)], check=True)
    names = ("plait_abi", "plait_ops", "plait_core", "plait_optim", "plait_autograd")
    folders = [str(Path(plait_abi.paths(name)["lib"]).parents[1]) for name in names]
    return lambda *arguments: subprocess.run(
        [str(program), *arguments, ":".join(folders)],
        env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_program_in_c_classifies(tmp_path: Path) -> None:
    model, row = make().eval(), pc.randn(1, 4)
    export(model, (row,), tmp_path / "model.safetensors")
    (tmp_path / "row").write_bytes(row.numpy().tobytes())
    (tmp_path / "long").write_bytes(row.numpy().tobytes() * 2)
    classify = build(tmp_path, "classify")
    score, best = model(row)[0].max(0)
    result = classify("model.safetensors", "row")
    assert result.stdout == f"class {int(best)}, score {float(score):.4f}\n", result.stderr
    for arguments, texts in (
        (("none.safetensors", "row"), ("open: ", "none.safetensors", "No such file")),
        (("row", "row"), ("open: ", "row")),
        (("model.safetensors", "long"), ("long: ", "16", "17")),
        (("model.safetensors", "none"), ("none: No such file",)),
    ):
        result = classify(*arguments)
        assert result.returncode == 1 and all(text in result.stderr for text in texts), result


def test_a_program_in_c_trains(tmp_path: Path) -> None:
    step, _ = step_of(make())
    export(step, batch(), tmp_path / "step.safetensors", training=True)
    result = build(tmp_path, "train_graph")("step.safetensors", "trained.safetensors")
    assert result.returncode == 0, result.stderr
    losses = [float(line.split()[-1]) for line in result.stdout.splitlines()]
    assert len(losses) == 4 and losses[-1] < losses[0]
    trained = load(tmp_path / "trained.safetensors")
    numbers = {each["name"]: each["value"] for each in json.loads(trained.text)["numbers"]}
    assert numbers["adam.0.lr"] == 5e-3 and numbers["adam.0.step"] > 100


def test_what_is_no_graph_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "none.safetensors"
    with pytest.raises(NotImplementedError, match="reads the elements of a tensor"):
        export(lambda x: x * x.sum().item(), (pc.ones(2),), path)
    with pytest.raises(TypeError, match="a result is float"):
        export(lambda x: (x * 2, 1.5), (pc.ones(2),), path)
    weight = pc.ones(4)
    half = weight[:2]

    def writes(x: Any) -> Any:
        half.add_(1)
        return x * half.sum() + weight.sum()

    with pytest.raises(NotImplementedError, match="share memory"):
        export(writes, (pc.ones(2),), path)
    assert not path.exists()


def test_dead_and_equal_nodes_are_not_written(tmp_path: Path) -> None:
    weight, unused = pc.randn(3), pc.randn(3)

    def function(x: Any) -> Any:
        _ = (x * unused).log()
        one, two = pc.exp(x * weight), pc.exp(x * weight)
        return two, one.sum()

    x = pc.randn(4, 3)
    export(function, (x,), tmp_path / "exp.safetensors")
    loaded = load(tmp_path / "exp.safetensors")
    assert [node.op for node in loaded.graph.nodes] == ["mul", "exp", "sum"]
    assert [value.name for value in loaded.graph.outputs] == ["output.0", "output.1"]
    assert [tensor.tolist() for tensor in loaded.weights.values()] == [weight.tolist()]
    assert_same(loaded(x), function(x))


class Named(nn.Module):
    """Its parameters have the names that values, inputs and outputs of a graph have."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("0", "1", "x", "output"):
            self.register_parameter(name, nn.Parameter(pc.randn(2)))

    def forward(self, x: Any) -> Any:
        """Read each parameter behind the call whose result has the same number."""
        zero, one, same, output = self.parameters()
        return pc.exp(x * zero) + one * same - zero * output


def test_names_of_parameters_are_those_of_nothing_else(tmp_path: Path) -> None:
    model, x = Named(), pc.randn(2)
    export(model, (x,), tmp_path / "named.safetensors")
    loaded = load(tmp_path / "named.safetensors")
    assert set(loaded.weights) == {"0", "1", "x", "output"}
    assert [value.name for value in loaded.graph.inputs] == ["x.1"]
    assert [value.name for value in loaded.graph.outputs] == ["output.1"]
    assert loaded(x).tolist() == model(x).tolist()


def test_a_file_of_tensors_alone_says_so(tmp_path: Path) -> None:
    pc.save({"w": pc.ones(2)}, tmp_path / "state.safetensors")
    with pytest.raises(ValueError, match="has no graph"):
        load(tmp_path / "state.safetensors")


def test_operators_are_taken_apart_at_all_sizes() -> None:
    def function(x: Any) -> Any:
        return nn.functional.softmax(x, 1) / x.shape[0]

    x = pc.randn(3, 4)
    whole = export(function, (x,))
    parts = export(function, (x,), dynamic={"x": {0: "n"}}, apart={"softmax"})
    assert "softmax" in [node.op for node in whole.graph.nodes]
    assert [node.op for node in parts.graph.nodes[:4]] == ["amax", "sub", "exp", "sum"]
    for n in (1, 3, 7):
        y = pc.randn(n, 4)
        assert pc.allclose(parts(y), function(y))


def test_refused_operators_are_errors_where_they_are_called() -> None:
    def function(x: Any) -> Any:
        return x.exp() + x.sin()

    with pytest.raises(NotImplementedError, match="sin: it is called here") as caught:
        export(function, (pc.ones(2),), refused={"sin"})
    assert "function" in [frame.name for frame in caught.traceback]
    assert export(function, (pc.ones(2),))(pc.zeros(2)).tolist() == [1.0, 1.0]


def test_boxes_that_are_kept_are_counted_in_each_run() -> None:
    def function(boxes: Any) -> Any:
        return boxes[plait_abi.operator("nms")(boxes, boxes[:, 2], 0.5)]

    boxes = pc.tensor([[0.0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 4, 4]])
    run = export(function, (boxes,))
    assert (run(boxes).shape[0], run(boxes + pc.tensor([[0.0], [5.0], [9.0]])).shape[0]) == (2, 3)


def test_inputs_have_memory_for_each_element(tmp_path: Path) -> None:
    x, path = pc.randn(2, 3), tmp_path / "sum.safetensors"
    export(lambda x, y: x + y, (pc.randn(1, 3).expand(2, 3), x), path)
    run = load(path)
    assert all(value.strides in (None, (3, 1)) for value in run.graph.inputs)
    assert_same(run(x, x), x + x)
    assert_same(run(x[:1].expand(2, 3), x), x[:1] + x)


def test_inputs_in_another_layout_are_copied_unless_the_graph_writes_to_them() -> None:
    x, turned = pc.randn(2, 3), pc.randn(3, 2).t()
    run = export(lambda x: x * 2 + 1, (turned,))
    for given in (x, turned):
        assert_same(run(given), given * 2 + 1)
    assert_same(export(lambda x: x * 2, (x,))(turned), turned * 2)
    writes = export(lambda x: x.add_(1), (turned,))
    with pytest.raises(ValueError, match=r"the strides \(3, 1\); the graph is for \(1, 2\)"):
        writes(x)
    with pytest.raises(ValueError, match=r"the input x is float32\(3, 2\)"):
        run(pc.ones(3, 2))


def test_a_tensor_that_is_an_argument_twice() -> None:
    x = pc.ones(2)
    with pytest.raises(ValueError, match=r"an argument twice; pass a `clone\(\)` of it"):
        export(lambda x, y: x + y[0], (x, [x]))
