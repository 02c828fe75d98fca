"""Graphs that the library recorded and wrote: read, changed and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import plait_core as pc
import plait_nn as nn
import plait_optim
from plait_graph import Graph, _graph, export, load
from plait_graph.interpreter import run_graph
from plait_graph.passes import (
    fold_batch_norm,
    fold_constants,
    infer_shapes,
    merge_equal_nodes,
    remove_dead_nodes,
)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, bias=False)
        self.norm = nn.BatchNorm2d(5)
        self.fc = nn.Linear(5, 2)

    def forward(self, x: Any) -> Any:
        return self.fc(nn.functional.relu(self.norm(self.conv(x))).mean((2, 3)))


def recorded(path: Path, load_tensors: Any) -> tuple[Graph, dict[str, Any]]:
    texts, arrays = load_tensors(path)
    weights = {name: pc.tensor(array) for name, array in arrays.items()}
    return Graph.from_json(texts["plait_graph"]), weights


def test_a_recorded_model_is_read_folded_and_run(tmp_path: Path, load_tensors: Any) -> None:
    model = Net()
    model.norm.running_var.uniform_(0.5, 2.0)
    model.norm.running_mean.uniform_(-1.0, 1.0)
    model.eval()
    x = pc.randn(2, 3, 8, 8)
    path = tmp_path / "net"
    export(model, (x,), path)
    graph, weights = recorded(path, load_tensors)
    expected = load(path)(x)
    assert run_graph(graph, [x], weights)[0].tolist() == expected.tolist()
    folded = fold_batch_norm(fold_constants(graph, weights), weights)
    folded = remove_dead_nodes(merge_equal_nodes(folded))
    assert [node.op for node in folded.nodes] == ["conv2d", "relu", "mean", "linear"]
    assert pc.allclose(run_graph(folded, [x], weights)[0], expected, 1e-5, 1e-5)
    program = _graph.Program(folded.to_json())
    program.bind([weights[value.name] for value in folded.weights])
    (result,) = program.run([x])
    assert result.tolist() == run_graph(folded, [x], weights)[0].tolist()


def test_a_recorded_step_is_read_and_run(tmp_path: Path, load_tensors: Any) -> None:
    model = Net()
    optimizer = plait_optim.Adam(model.parameters(), 0.01)
    x, target = pc.randn(4, 3, 8, 8), pc.tensor([0, 1, 0, 1])

    def step(x: Any, target: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(2):
        step(x, target)
    path = tmp_path / "step"
    export(step, (x, target), path, training=True)
    graph, weights = recorded(path, load_tensors)
    graph = remove_dead_nodes(merge_equal_nodes(graph))
    assert "adam_step" in [node.op for node in graph.nodes]
    loaded = load(path)
    numbers = {number.name: number.value for number in graph.numbers}
    for _ in range(3):
        (loss,) = run_graph(graph, [x, target], weights, numbers)
        assert loss.tolist() == loaded(x, target).tolist()
        numbers = {n.name: numbers[n.name] + n.step for n in graph.numbers}
    for name, tensor in weights.items():
        assert tensor.tolist() == loaded.weights[name].tolist(), name
    described = infer_shapes(graph)
    assert all(value.shape is not None for value in described.values())
