"""`torch.fx`: what traces record, the code they become, and passes over graphs."""

from __future__ import annotations

import copy
import importlib
import io
import math
import operator
import pickle
import threading
from typing import Any

import pytest

import plait
import plait.nn.functional as F
from plait import nn


class Block(nn.Module):
    """A residual block with a parameter and a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)
        self.conv2, self.bn2 = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.act = nn.ReLU()
        self.down = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))
        self.scale = nn.Parameter(plait.full((1,), 2.0))
        self.register_buffer("shift", plait.full((1,), 0.5))

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y)) + self.down(x)
        y = self.act(y) * self.scale.abs() + self.shift
        return plait.flatten(y, 1)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(3 * 16, 5)

    def forward(self, x: Any) -> Any:
        return F.log_softmax(self.head(self.block(x)), dim=-1)


def _same(a: Any, b: Any) -> None:
    assert a.tolist() == b.tolist()


def helper(x: Any, n: int) -> Any:
    """A function with a loop that a trace cannot record."""
    for _ in range(int(x.shape[0])):
        n += 1
    return x + n


def uses_helper(x: Any) -> Any:
    return helper(x, n=1) * 2


# ---- traces


def test_a_trace_computes_the_same_as_the_module(torch: Any) -> None:
    net, x = Net().eval(), plait.randn(2, 3, 4, 4)
    traced = torch.fx.symbolic_trace(net)
    traced.graph.lint()
    _same(traced(x), net(x))
    assert sorted(traced.state_dict()) == sorted(net.state_dict())
    assert traced.block.conv1 is net.block.conv1 and type(traced).__name__ == "Net"
    assert isinstance(traced, torch.fx.GraphModule) and not traced.training
    targets = [n.target for n in traced.graph.nodes if n.op == "call_module"]
    assert targets[:2] == ["block.conv1", "block.bn1"] and "block.down.0" in targets
    net.block.scale.data.fill_(3.0)  # a graph reads parameters, it does not hold their values
    _same(traced(x), net(x))


def test_code_is_pytorchs(torch: Any) -> None:
    def f(x: torch.Tensor, y: Any = 3, *, k: Any = None) -> Any:
        z = F.relu(x) + y
        z = torch.cat([z, z], dim=-1).view(z.size(0), -1)[:, 1:5]
        z = -z // 2
        a = F.softmax(1 - z, -1).chunk(2)[0]
        return {"a": F.gelu(a), "b": (z.shape[0], 1.5, float("inf"))}

    # written by PyTorch 2.13 for the same function
    f.__annotations__ = {"x": torch.Tensor}
    assert torch.fx.symbolic_trace(f).code == (
        "\n\n\ndef forward(self, x : torch.Tensor, y = 3, k = None):\n"
        "    relu = torch.nn.functional.relu(x, inplace = False);  x = None\n"
        "    add = relu + y;  relu = y = None\n"
        "    cat = torch.cat([add, add], dim = -1)\n"
        "    size = add.size(0);  add = None\n"
        "    view = cat.view(size, -1);  cat = size = None\n"
        "    getitem = view[(slice(None, None, None), slice(1, 5, None))];  view = None\n"
        "    neg = -getitem;  getitem = None\n"
        "    floordiv = neg // 2;  neg = None\n"
        "    sub = 1 - floordiv\n"
        "    softmax = torch.nn.functional.softmax(sub, dim = -1, _stacklevel = 3, dtype = None);"
        "  sub = None\n"
        "    chunk = softmax.chunk(2);  softmax = None\n"
        "    getitem_1 = chunk[0];  chunk = None\n"
        "    gelu = torch._C._nn.gelu(getitem_1);  getitem_1 = None\n"
        "    getattr_1 = floordiv.shape;  floordiv = None\n"
        "    getitem_2 = getattr_1[0];  getattr_1 = None\n"
        "    return {'a': gelu, 'b': (getitem_2, 1.5, inf)}\n    "
    )


def test_a_graph_prints_as_pytorchs(torch: Any) -> None:
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert str(traced.graph) == (
        "graph():\n"
        "    %input_1 : [num_users=1] = placeholder[target=input]\n"
        "    %_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})\n"
        "    %_1 : [num_users=1] = call_module[target=1](args = (%_0,), kwargs = {})\n"
        "    return _1"
    )
    assert '_0 = getattr(self, "0")(input_1);  input_1 = None' in traced.code


def test_arguments_of_all_kinds(torch: Any) -> None:
    def f(d: Any, *rest: Any, scale: Any = 2.0, **more: Any) -> Any:
        a, b = d["pair"]
        return (a - b) * scale + rest[0], [more["z"]]

    traced = torch.fx.symbolic_trace(f)
    one = plait.ones(2)
    out, (z,) = traced({"pair": (one * 3, one)}, 2.0, one, z=one * 7)
    assert out.tolist() == [5.0, 5.0] and z.tolist() == [7.0, 7.0]


def test_functions_in_attributes_and_constants_are_recorded(torch: Any) -> None:
    class Held(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.function, self.constant = F.layer_norm, plait.full((3,), 2.0)

        def forward(self, x: Any) -> Any:
            y = self.function(x, (3,)) + math.sqrt(4.0)
            return plait.add(plait.ones(3), y) * self.constant + plait.full((3,), 4.0)

    holder, x = Held(), plait.randn(2, 3)
    traced = torch.fx.symbolic_trace(holder)
    assert holder.function is F.layer_norm is plait.nn.functional.layer_norm
    _same(traced(x), holder(x))
    names = [n.name for n in traced.graph.nodes]
    assert "layer_norm" in names and "_tensor_constant0" in names and "constant" in names


def test_wrap_keeps_a_function_whole(torch: Any) -> None:
    with pytest.raises(TypeError):
        torch.fx.symbolic_trace(uses_helper)
    torch.fx.wrap("helper")
    traced = torch.fx.symbolic_trace(uses_helper)
    assert [n.target for n in traced.graph.nodes if n.name == "helper"] == [helper]
    _same(traced(plait.ones(3)), uses_helper(plait.ones(3)))
    again = torch.fx.symbolic_trace(traced)
    _same(again(plait.ones(3)), uses_helper(plait.ones(3)))


def test_concrete_arguments_decide(torch: Any) -> None:
    def f(x: Any, flag: bool = True) -> Any:
        return x if flag else x + 1

    traced = torch.fx.symbolic_trace(f, concrete_args={"flag": False})
    assert traced(plait.ones(1), False).tolist() == [2.0]
    with pytest.raises(AssertionError, match="specialized"):
        traced(plait.ones(1), True)


@pytest.mark.parametrize(
    "what",
    [
        lambda x: 1 if x.sum() > 0 else 0,
        lambda x: [each for each in x],  # noqa: C416
        lambda x: 1 in x,
        lambda x: dict(**x),
        lambda x: x and 1,
    ],
)
def test_what_depends_on_values_is_refused(torch: Any, what: Any) -> None:
    with pytest.raises(torch.fx.proxy.TraceError):
        torch.fx.symbolic_trace(what)
    with pytest.raises(RuntimeError, match="wrap"):
        torch.fx.symbolic_trace(lambda x: len(x))


def test_a_failing_trace_leaves_no_wrappers(torch: Any) -> None:
    before = (F.relu, nn.Module.__call__, nn.Module.__getattr__, math.sqrt)
    with pytest.raises(torch.fx.proxy.TraceError):
        torch.fx.symbolic_trace(lambda x: F.relu(x) if x else x)
    assert before == (F.relu, nn.Module.__call__, nn.Module.__getattr__, math.sqrt)
    assert not torch.fx.proxy.is_fx_tracing()
    assert nn.Linear(2, 2)(plait.ones(1, 2)).shape == (1, 2)


def test_other_threads_compute_while_one_traces(torch: Any) -> None:
    net = nn.Linear(2, 2)
    seen: list[Any] = []

    def other() -> None:
        seen.append((F.relu(net(plait.ones(1, 2))), net.weight))

    def f(x: Any) -> Any:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return F.relu(x)

    torch.fx.symbolic_trace(f)
    assert isinstance(seen[0][0], plait.Tensor) and seen[0][1] is net.weight


# ---- graphs


def test_graphs_by_hand(torch: Any) -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.add, (x, 1))
    z = graph.call_method("relu", (y,))
    graph.output(z)
    with graph.inserting_before(z):
        twice = graph.call_function(torch.mul, (y, 2))
    z.replace_input_with(y, twice)
    assert list(y.users) == [twice] and z.all_input_nodes == [twice] and twice.next is z
    graph.lint()
    module = torch.fx.GraphModule(nn.Module(), graph)
    assert module(plait.ones(1)).tolist() == [4.0]
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(y)
    y.prepend(twice)
    with pytest.raises(RuntimeError, match="before it has been defined"):
        graph.lint()
    y.append(twice)
    z.replace_all_uses_with(y)
    assert graph.eliminate_dead_code() and len(graph.nodes) == 3
    module.recompile()
    assert module(plait.ones(1)).tolist() == [2.0]


def test_copies_and_pickles(torch: Any) -> None:
    net, x = Net().eval(), plait.randn(1, 3, 4, 4)
    traced = torch.fx.symbolic_trace(net)
    expected = net(x)
    for other in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), copy.copy(traced)):
        _same(other(x), expected)
        assert other.code == traced.code and other.graph is not traced.graph
        assert other.graph.owning_module is other and type(other) is not type(traced)
    deep = copy.deepcopy(traced)
    deep.head.weight.data.zero_()
    _same(traced(x), expected)
    file = io.BytesIO()
    torch.save(traced.state_dict(), file)
    file.seek(0)
    deep.load_state_dict(torch.load(file))
    _same(deep(x), expected)


def test_unused_submodules_go(torch: Any) -> None:
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert traced.add_submodule("extra.inner", nn.Linear(1, 1))
    traced.delete_all_unused_submodules()
    assert [name for name, _ in traced.named_children()] == ["0", "1"]


# ---- passes


def test_interpreter_and_transformer(torch: Any) -> None:
    class Log(torch.fx.Interpreter):  # type: ignore[misc, name-defined]
        def run_node(self, n: Any) -> Any:
            seen.append(n.name)
            return super().run_node(n)

    class Swap(torch.fx.Transformer):  # type: ignore[misc, name-defined]
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return F.gelu(*args) if target is F.relu else super().call_function(
                target, args, kwargs
            )  # fmt: skip

    seen: list[str] = []
    net, x = Net().eval(), plait.randn(1, 3, 4, 4)
    traced = torch.fx.symbolic_trace(net)
    _same(Log(traced).run(x), net(x))
    assert seen == [n.name for n in traced.graph.nodes]
    _same(torch.fx.Transformer(traced).transform()(x), net(x))
    swapped = torch.fx.symbolic_trace(lambda x: F.relu(x) + 1)
    _same(Swap(swapped).transform()(x), F.gelu(x) + 1)


def test_replace_pattern(torch: Any) -> None:
    def f(x: Any, w1: Any, w2: Any) -> Any:
        return torch.cat([w1, w2]).sum() + x + torch.cat([w2, w1]).sum()

    traced = torch.fx.symbolic_trace(f)
    matches = torch.fx.replace_pattern(
        traced, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b]).max()
    )
    one = plait.ones(2)
    assert len(matches) == 2 and "cat" not in traced.code
    assert traced(one, one * 2, one * 3).tolist() == [7.0, 7.0]
    reference = torch.fx.symbolic_trace(lambda x: (torch.neg(x), torch.relu(torch.neg(x))))
    assert (
        torch.fx.subgraph_rewriter.replace_pattern(
            reference, lambda a: torch.abs(a), lambda a: torch.neg(a)
        )
        == []
    )


def test_a_pass_that_fuses_convolutions_and_norms(torch: Any) -> None:
    net, x = Net().eval(), plait.randn(1, 3, 4, 4)
    net.block.bn1.running_mean.fill_(0.3)
    traced = torch.fx.symbolic_trace(copy.deepcopy(net))
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        conv, norm = modules[node.args[0].target], modules[node.target]
        factor = norm.weight / (norm.running_var + norm.eps).sqrt()
        bias = 0.0 if conv.bias is None else conv.bias
        conv.bias = nn.Parameter((bias - norm.running_mean) * factor + norm.bias)
        conv.weight = nn.Parameter(conv.weight * factor.reshape(-1, 1, 1, 1))
        node.replace_all_uses_with(node.args[0])
        traced.graph.erase_node(node)
    traced.recompile()
    traced.delete_all_unused_submodules()
    assert not any(isinstance(each, nn.BatchNorm2d) for each in traced.modules())
    assert plait.allclose(traced(x), net(x), atol=1e-5)


def test_shapes(torch: Any) -> None:
    from torch.fx.passes.shape_prop import ShapeProp

    traced = torch.fx.symbolic_trace(Net().eval())
    ShapeProp(traced).propagate(plait.randn(2, 3, 4, 4))
    (head,) = traced.graph.find_nodes(op="call_module", target="head")
    assert tuple(head.meta["tensor_meta"].shape) == (2, 5)


def test_features_of_inner_nodes(torch: Any) -> None:
    """As libraries of models extract features: a tracer that knows names, copies, a new output."""

    class Named(torch.fx.Tracer):  # type: ignore[misc, name-defined]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.at, self.names = "", {}

        def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
            before, self.at = self.at, self.path_of_module(m)
            try:
                if not self.is_leaf_module(m, self.at):
                    return forward(*args, **kwargs)
                return self.create_proxy("call_module", self.at, args, kwargs)
            finally:
                self.at = before

        def create_proxy(self, kind: Any, target: Any, args: Any, kwargs: Any, name: Any = None,
                         type_expr: Any = None, *_: Any) -> Any:  # fmt: skip
            proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr)
            self.names[proxy.node] = self.at
            return proxy

    net, x = Net().eval(), plait.randn(1, 3, 4, 4)
    tracer = Named(autowrap_modules=(math,))
    graph = tracer.trace(net)
    module = torch.fx.GraphModule(tracer.root, graph, "Features")
    (old,) = [n for n in graph.nodes if n.op == "output"]
    graph.erase_node(old)
    inner = next(n for n, name in tracer.names.items() if name == "block.conv2")
    with graph.inserting_after(list(graph.nodes)[-1]):
        graph.output({"conv2": inner})
    graph.eliminate_dead_code()
    module.recompile()
    module.delete_all_unused_submodules()
    expected = net.block.conv2(F.relu(net.block.bn1(net.block.conv1(x))))
    _same(module(x)["conv2"], expected)
    assert not hasattr(module, "head")


def test_proxies_outside_of_a_trace_record_functions_in_python(torch: Any) -> None:
    graph = torch.fx.Graph()
    tracer = torch.fx.proxy.GraphAppendingTracer(graph)
    x, y = (torch.fx.Proxy(graph.placeholder(name), tracer) for name in "xy")
    product = torch.einsum("ij,jk->ik", [x, y])
    torch._assert(product.shape[0] == 2, "two rows")
    graph.output(torch.nn.functional.softmax(torch.conv2d(product, y), dim=1).node)
    lines = str(graph).splitlines()
    assert any("torch.functional.einsum](args = (ij,jk->ik, %x, %y)" in line for line in lines)
    assert any("torch.conv2d](args = (%einsum, %y)" in line for line in lines)
    assert any("torch.nn.functional.softmax]" in line for line in lines)
    assert any("_assert]" in line for line in lines)
    assert torch.einsum("i,i", torch.ones(3), torch.ones(3)).item() == 3


def test_a_trace_leaves_lookup_in_python_where_it_was(torch: Any) -> None:
    installed = importlib.import_module("plait_core.attribute_lookup").installed

    class Slow(nn.Module):
        def __init_subclass__(cls) -> None:
            pass  # Module's does not run

    class Unusual(Slow):
        pass

    class Usual(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1

    assert not installed(Unusual) and installed(Usual)
    torch.fx.symbolic_trace(Usual())
    assert not installed(Unusual) and installed(Usual)


def test_a_module_of_a_tracer_that_no_pickle_can_name(torch: Any) -> None:
    class Tracer(torch.fx.Tracer):  # type: ignore[misc]
        def is_leaf_module(self, module: Any, name: str) -> bool:
            return True

    layer = torch.nn.Sequential(torch.nn.Linear(2, 1))
    module = torch.fx.GraphModule(layer, Tracer().trace(layer))
    assert module.graph._tracer_cls is Tracer and module._tracer_cls is None
    again = pickle.loads(pickle.dumps(module))
    assert again.code == module.code and again.graph._tracer_cls is None
    assert torch.equal(again(torch.ones(1, 2)), layer(torch.ones(1, 2)))
