"""`torch.fx.passes`, and the fusion of convolutions with batch norms."""

from __future__ import annotations

from typing import Any

import pytest


def test_passes_over_a_module(torch: Any) -> None:
    from torch.fx.passes.infra.pass_base import PassBase, PassResult
    from torch.fx.passes.infra.pass_manager import PassManager

    class FewerAdditions(PassBase):
        def __init__(self) -> None:
            self.checked: list[str] = []

        def requires(self, graph_module: Any) -> None:
            self.checked.append("before")

        def ensures(self, graph_module: Any) -> None:
            self.checked.append("after")

        def call(self, graph_module: Any) -> Any:
            for node in graph_module.graph.nodes:
                if node.op == "call_function":
                    node.replace_all_uses_with(node.args[0])
                    graph_module.graph.erase_node(node)
                    graph_module.recompile()
                    return PassResult(graph_module, True)
            return PassResult(graph_module, False)

    each = FewerAdditions()
    module = torch.fx.symbolic_trace(lambda x: x + 1 + 2 + 3)
    assert each(module).modified and each.checked == ["before", "after"]
    assert module(torch.zeros(1)).item() == 5
    manager = PassManager(steps=10)
    manager.add_pass(each)
    result = manager(module)
    assert result.modified and result.graph_module(torch.zeros(1)).item() == 0
    assert len(each.checked) == 2 * 4 and not manager(module).modified
    with pytest.raises(NotImplementedError, match="must define `call`"):
        PassBase()(module)
    with pytest.raises(TypeError, match="must return a PassResult"):
        PassManager([lambda module: None])(module)
    with pytest.raises(NotImplementedError, match="in the wanted order"):
        PassManager([each], [print])


class Two:
    """A model in two parts, made with the `torch` of a test."""

    def __new__(cls, torch: Any) -> Any:
        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
                self.scale = torch.nn.Parameter(torch.ones(3))

            def forward(self, x: Any, y: Any) -> Any:
                first = self.a(x)
                both = first + y
                return self.b(both) * self.scale + first, both

        return Model()


def test_parts_of_a_module(torch: Any) -> None:
    from torch.fx.passes.split_module import split_module

    model = Two(torch)
    traced = torch.fx.symbolic_trace(model)
    early = {"a", "add"}
    result = split_module(traced, model, lambda node: int(node.name not in early))
    assert [name for name, _ in result.named_children()] == ["submod_0", "submod_1"]
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    assert all(torch.equal(a, b) for a, b in zip(result(x, y), model(x, y), strict=True))
    assert result.scale is model.scale and result.submod_0.a is model.a
    with pytest.raises(RuntimeError, match="cycle"):
        split_module(traced, model, lambda node: int(node.name in ("add", "mul")))


def test_fused_convolutions(torch: Any) -> None:
    from torch.fx.experimental.optimization import fuse, remove_dropout

    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(),
        nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)),
        nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4, track_running_stats=False),
    )  # fmt: skip
    model(torch.randn(4, 3, 8, 8))
    model.eval()
    x = torch.randn(1, 3, 8, 8)
    fused = fuse(model)
    names = [node.target for node in fused.graph.nodes if node.op == "call_module"]
    assert names == ["0", "2", "3", "4.0", "5", "6"]
    assert torch.allclose(fused(x), model(x), atol=1e-5)
    assert model[0].weight is not fused.get_submodule("0").weight
    names = [node.target for node in remove_dropout(model).graph.nodes]
    assert "3" not in names and "2" in names


def test_names_of_types(torch: Any) -> None:
    from torch.fx._compatibility import compatibility
    from torch.fx.graph_module import _CodeOnlyModule
    from torch.fx.immutable_collections import immutable_dict, immutable_list
    from torch.fx.node import Argument, Target, base_types

    assert compatibility(is_backward_compatible=True)(len) is len
    assert Argument is Target is Any and torch.Tensor in base_types
    assert immutable_list([1]) == [1] and immutable_dict(a=1) == {"a": 1}
    module = _CodeOnlyModule(torch.nn.Linear(1, 2).__dict__)
    assert module.weight.shape == (2, 1)
