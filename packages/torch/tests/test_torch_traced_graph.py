"""`torch.jit._get_trace_graph`: the calls that tools count operations by."""

from __future__ import annotations

from typing import Any


def _calls(graph: Any) -> list[tuple[str, list[Any]]]:
    return [
        (node.kind(), [value.type().sizes() for value in node.outputs()])
        for node in graph.nodes()
        if node.kind().startswith("aten::")
    ]


def test_layers_have_the_names_of_their_operators(torch: Any) -> None:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.LayerNorm(4), nn.Linear(4, 2), nn.Softmax(-1),
    ).eval()  # fmt: skip
    graph, result = torch.jit._get_trace_graph(model, (torch.ones(1, 3, 6, 6),))
    assert result.shape == (1, 2)
    assert _calls(graph) == [
        ("aten::_convolution", [[1, 4, 4, 4]]),
        ("aten::batch_norm", [[1, 4, 4, 4]]),
        ("aten::relu_", [[1, 4, 4, 4]]),
        ("aten::adaptive_avg_pool2d", [[1, 4, 1, 1]]),
        ("aten::flatten", [[1, 4]]),
        ("aten::layer_norm", [[1, 4]]),
        ("aten::linear", [[1, 2]]),
        ("aten::softmax", [[1, 2]]),
    ]


def test_arguments_are_in_the_order_of_the_operators(torch: Any) -> None:
    F = torch.nn.functional
    x, mean, weight = torch.ones(1, 2, 4, 4), torch.zeros(2), torch.ones(2)

    def function(x: Any) -> Any:
        y = F.batch_norm(x, mean, weight, weight=weight, training=False)
        y = F.conv_transpose2d(y, torch.ones(2, 3, 1, 1), stride=2)
        return y, torch.einsum("bcij,bcik->bjk", y, y), 1.0 - y

    graph, _ = torch.jit._get_trace_graph(function, (x,))
    nodes = {node.kind(): list(node.inputs()) for node in graph.nodes()}
    norm, convolution = nodes["aten::batch_norm"], nodes["aten::_convolution"]
    assert [each.isCompleteTensor() for each in norm] == [
        *(True, True, False, True, True),
        *(False, False, False, False),
    ]
    assert norm[2].toIValue() is None and norm[5].toIValue() is False
    assert len(convolution) == 13 and convolution[6].toIValue() is True
    assert norm[0].node().kind() == "prim::Param"
    equation, operands, _ = nodes["aten::einsum"]
    assert equation.toIValue() == "bcij,bcik->bjk"
    shapes = [each.type().sizes() for each in operands.node().inputs()]
    assert operands.node().kind() == "prim::ListConstruct" and shapes == [[1, 3, 7, 7]] * 2


def test_what_the_result_does_not_need_is_left_out(torch: Any) -> None:
    def function(x: Any) -> Any:
        _ = torch.exp(x)
        y = torch.relu(x)
        y.add_(1)
        return {"one": (y * 2,)}

    graph, _ = torch.jit._get_trace_graph(function, torch.ones(2))
    assert [name for name, _ in _calls(graph)] == ["aten::relu", "aten::add_", "aten::mul"]


def test_scopes_and_steps_of_attention(torch: Any) -> None:
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    states: list[Any] = []

    def enter(module: Any, args: Any) -> None:
        states.append(torch._C._get_tracing_state())
        states[-1].push_scope("attention")
        assert torch.jit.is_tracing()

    attention.register_forward_pre_hook(enter)
    attention.register_forward_hook(lambda *args: states[-1].pop_scope())
    x = torch.ones(1, 3, 4)
    graph, _ = torch.jit._get_trace_graph(lambda x: attention(x * 2, x, x)[0] + 1, (x,))
    nodes = [node for node in graph.nodes() if node.kind().startswith("aten::")]
    assert sum(node.kind() == "aten::linear" for node in nodes) >= 2
    assert [node.scopeName() for node in nodes[:1] + nodes[-1:]] == ["", ""]
    assert {node.scopeName() for node in nodes[1:-1]} == {"attention"}
    assert torch._C._get_tracing_state() is None and not torch.jit.is_tracing()
