"""`torch.export`: programs of modules, their signatures, calls, modules and files."""

from __future__ import annotations

import io
import json
import pathlib
import zipfile
from typing import Any

import pytest

graph = pytest.importorskip("plait_graph")


@pytest.fixture(name="model")
def small_model(torch: Any) -> Any:
    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.bn = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)
            self.shift = torch.tensor([1.0, 2.0, 3.0, 4.0])
            self.compiling: list[bool] = []

        def forward(self, x: Any, scale: float = 1.0, *, more: Any = None) -> Any:
            self.compiling.append(torch.compiler.is_compiling())
            y = self.bn(self.fc(x)) * scale + self.shift
            return {"y": y, "rest": [y.sum(), more["z"] if more else y]}

    torch.manual_seed(0)
    return Model()


def test_signature(torch: Any, model: Any) -> None:
    x = torch.randn(5, 3)
    program = torch.export.export(model, (x,))
    signature = program.graph_signature
    assert isinstance(program, torch.export.ExportedProgram) and all(model.compiling)
    assert not torch.compiler.is_compiling()
    assert signature.user_inputs == ("x",)
    assert signature.parameters == ("fc.weight", "fc.bias", "bn.weight", "bn.bias")
    assert signature.buffers == ("bn.running_mean", "bn.running_var", "bn.num_batches_tracked")
    assert set(signature.buffers_to_mutate.values()) == set(signature.buffers)
    assert signature.inputs_to_parameters["p_fc_weight"] == "fc.weight"
    assert signature.inputs_to_buffers["b_bn_running_var"] == "bn.running_var"
    assert signature.lifted_tensor_constants == tuple(program.constants) != ()
    kinds = {spec.kind for spec in signature.input_specs}
    assert kinds == set(torch.export.graph_signature.InputKind)
    assert list(program.state_dict) == [*signature.parameters, *signature.buffers]
    assert [name for name, _ in program.named_parameters()] == list(signature.parameters)
    assert len(list(program.parameters())) == 4 and len(list(program.buffers())) == 3
    assert "linear(%x, %fc.weight, %fc.bias)" in str(program)
    assert program.run_decompositions() is program and program.example_inputs == ((x,), {})


def test_calls_have_the_containers_of_the_example(torch: Any, model: Any) -> None:
    x, z = torch.randn(5, 3), torch.randn(2)
    model.eval()
    program = torch.export.export(model, (x, 2.0), {"more": {"z": z}})
    other, w = torch.randn(5, 3), torch.randn(2)
    expected = model(other, 2.0, more={"z": w})
    for call in (program, program.module()):
        result = call(other, 2.0, more={"z": w})
        assert torch.equal(result["y"], expected["y"]) and torch.equal(result["rest"][1], w)
        assert torch.equal(result["rest"][0], expected["rest"][0])
    with pytest.raises(ValueError, match=r"the argument 1 was 2\.0 in the example.*got 3\.0"):
        program(x, 3.0, more={"z": z})
    with pytest.raises(ValueError, match=r"the arguments must be TreeSpec.*; got TreeSpec"):
        program(x, 2.0)
    with pytest.raises(ValueError, match=r"the input x is float32\(2, 3\)"):
        program(torch.ones(2, 3), 2.0, more={"z": z})


def test_modules_of_programs_train(torch: Any, model: Any) -> None:
    x = torch.randn(5, 3)
    module = torch.export.export(model.eval(), (x,)).module()
    assert set(module.state_dict()) == {
        name for name in model.state_dict() if name != "bn.num_batches_tracked"
    }
    module(x)["y"].square().sum().backward()
    model(x)["y"].square().sum().backward()
    assert torch.allclose(module.fc.weight.grad, model.fc.weight.grad)
    with torch.no_grad():
        module.fc.weight.mul_(2)  # the module's memory
        assert torch.equal(module(x)["y"], model(x)["y"])
        assert torch.allclose(module.double()(x.double())["y"], model(x)["y"].double())


def test_files(torch: Any, model: Any, tmp_path: pathlib.Path) -> None:
    x = torch.randn(5, 3)
    program = torch.export.export(model.eval(), (x,))
    memory, path = io.BytesIO(), tmp_path / "model.safetensors"
    torch.export.save(program, memory)
    torch.export.save(program, path)
    memory.seek(0)
    for file in (memory, path, str(path)):
        other = torch.export.load(file)
        assert other.graph_signature == program.graph_signature
        assert torch.equal(other.module()(x)["y"], model(x)["y"])
        assert other.example_inputs is None
    assert torch.equal(graph.load(path)(x)[0], model(x)["y"])
    graph.export(lambda x, y: x - y, (x, x.clone()), path)
    assert torch.equal(torch.export.load(path)(x, torch.zeros(5, 3)), x)


def test_modules_of_fixed_sizes_refuse_others(torch: Any, model: Any) -> None:
    module = torch.export.export(model.eval(), (torch.ones(5, 3),)).module()
    for mode in (torch.no_grad, torch.enable_grad):
        with mode(), pytest.raises(ValueError, match=r"the input x is .*\(2, 3\)"):
            module(torch.ones(2, 3))


def test_extra_files(torch: Any, tmp_path: pathlib.Path) -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    path, found = tmp_path / "relu.safetensors", {"a.txt": "", "b": ""}
    torch.export.save(program, path, extra_files={"a.txt": "more", "b": "é".encode()})
    torch.export.load(path, extra_files=found)
    assert found == {"a.txt": "more", "b": "é"}
    with pytest.raises(RuntimeError, match="the file has no extra file 'c'"):
        torch.export.load(path, extra_files={"c": ""})
    torch.export.save(program, path)
    with pytest.raises(RuntimeError, match=r"the file has no extra file 'a\.txt'"):
        torch.export.load(path, extra_files=found)


def test_graph_modules_call_operators_of_pytorch(torch: Any, model: Any) -> None:
    x, other = torch.randn(5, 3), torch.randn(5, 3)
    for mode in (model.train, model.eval):
        mode()
        program = torch.export.export(model, (x,))
        graph_module = program.graph_module
        assert isinstance(graph_module, torch.fx.GraphModule)
        assert graph_module is program.graph_module
        signature, nodes = program.graph_signature, list(graph_module.graph.nodes)
        names = [spec.arg.name for spec in signature.input_specs]
        assert [node.name for node in nodes if node.op == "placeholder"] == names
        assert {node.op for node in nodes} == {"placeholder", "call_function", "output"}
        targets = [node.target for node in nodes]
        assert torch.ops.aten.linear.default in targets and "aten.linear" in graph_module.code
        linear = nodes[targets.index(torch.ops.aten.linear.default)]
        assert tuple(linear.meta["val"].shape) == (5, 4)
        state = [program.state_dict[name].clone() for name in program.state_dict]
        given = [*state, *program.constants.values(), other]
        with torch.no_grad():
            *changed, y, total, same = graph_module(*given)
            expected = model(other)
        assert len(changed) == len(signature.buffers_to_mutate)
        for name, value in zip(signature.buffers_to_mutate.values(), changed, strict=True):
            assert torch.equal(value, dict(model.named_buffers())[name])
        assert torch.equal(y, expected["y"]) and torch.equal(same, expected["rest"][1])
        assert torch.equal(total, expected["rest"][0])


def test_graph_modules_of_results_that_are_lists(torch: Any) -> None:
    class Parts(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            first, second = x.split(2)
            values, indices = torch.cat([second, first]).max(1)
            return values * 2, indices

    x = torch.randn(4, 3)
    graph_module = torch.export.export(Parts(), (x,)).graph_module
    for got, expected in zip(graph_module(x), Parts()(x), strict=True):
        assert torch.equal(got, expected)
    assert "aten.cat" in graph_module.print_readable(print_output=False)


def test_free_sizes_are_those_of_graphs(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    real = graph.export

    def export(*args: Any, dynamic: Any = None, **kwargs: Any) -> Any:
        given.append(dynamic)
        return real(*args, **kwargs)

    monkeypatch.setattr(graph, "export", export)
    monkeypatch.setattr(graph, "Dim", lambda name, **limits: (name, limits), raising=False)
    x, Dim = torch.ones(5, 3), torch.export.Dim
    module = torch.nn.ReLU()
    batch = Dim("batch", max=64)
    for shapes in (None, {"input": None}, {"input": {0: Dim.STATIC, 1: 3}}, ((None, None),)):
        torch.export.export(module, (x,), dynamic_shapes=shapes)
    assert given == [None] * 4
    torch.export.export(module, (x,), dynamic_shapes={"input": {0: batch, 1: Dim.STATIC}})
    torch.export.export(module, (x,), dynamic_shapes=((Dim.AUTO, Dim("n", min=2)),))
    assert given[4] == {"input": {0: ("batch", {"max": 64}), 1: None}}
    assert given[5] == [[("s0", {}), ("n", {"min": 2})]]
    with pytest.raises(TypeError, match="`dynamic_shapes` has Dim, None or an int, got 'batch'"):
        torch.export.export(module, (x,), dynamic_shapes={"input": {0: "batch"}})


def test_refusals(torch: Any, model: Any, tmp_path: pathlib.Path) -> None:
    x, path = torch.ones(5, 3), tmp_path / "model.pt2"
    export, load = torch.export.export, torch.export.load
    with pytest.raises(ValueError, match=r"instance of `torch\.nn\.Module`, got function"):
        export(lambda x: x, (x,))
    with pytest.raises(TypeError, match="`args` must be a tuple, got Tensor"):
        export(model, x)
    with pytest.raises(ValueError, match="a tensor is an argument twice"):
        export(model, (x,), {"more": {"z": x}})
    program = export(torch.nn.ReLU(), (x,), dynamic_shapes=((torch.export.Dim.AUTO, None),))
    with pytest.raises(NotImplementedError, match=r"graph_module: a graph with free sizes"):
        program.graph_module  # noqa: B018
    with pytest.raises(ValueError, match="must be an identifier"):
        torch.export.Dim("a b")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("version", "1")
    with pytest.raises(ValueError, match=r"model\.pt2 is an archive of PyTorch"):
        load(path)
    run = graph.export(torch.nn.ReLU(), (x,))
    for text in ("[", "{}", '{"inputs": 3, "outputs": 3}', '{"inputs": "[1, null]"}'):
        run.metadata["torch.export"] = text
        run.save(path)
        with pytest.raises(ValueError, match=r"torch\.export is damaged"):
            load(path)
    torch.export.save(export(torch.nn.ReLU(), (x,)), path)
    interface = json.loads(graph.load(path).metadata["torch.export"])
    run.metadata["torch.export"] = json.dumps({**interface, "others": [[9, 1.0]]})
    run.save(path)
    with pytest.raises(ValueError, match="there is no such argument"):
        load(path)


def test_results_that_are_no_tensors(torch: Any, tmp_path: pathlib.Path) -> None:
    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return {"n": None, "y": x * 2, "rest": (3, x.sum(), "text", x.shape[0], True)}

    x, path = torch.randn(2, 3), tmp_path / "model.safetensors"
    program = torch.export.export(Model(), (x,))
    torch.export.save(program, path)
    for each in (program, torch.export.load(path)):
        result = each.module()(x)
        three, total, text, rows, true = result["rest"]
        assert list(result) == ["n", "y", "rest"] and result["n"] is None
        assert torch.equal(result["y"], x * 2) and torch.equal(total, x.sum())
        assert (three, text, rows, true) == (3, "text", 2, True)
    with pytest.raises(RuntimeError, match="cannot be free"):
        torch.export.export(Model(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("n")}})


def test_buffers_that_are_not_persistent(torch: Any, tmp_path: pathlib.Path) -> None:
    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.BatchNorm1d(2).eval()
            self.inner = torch.nn.Module()
            self.inner.register_buffer("mask", torch.tensor([1.0, 0.0]), persistent=False)

        def forward(self, x: Any, *, k: Any) -> Any:
            return {"y": self.fc(x) * self.inner.mask + k}

    x, k = torch.randn(3, 2), torch.ones(2)
    model = Model().eval()
    program = torch.export.export(model, (x,), {"k": k})
    torch.export.save(program, tmp_path / "file")
    for each in (program, torch.export.load(tmp_path / "file")):
        signature = each.graph_signature
        assert signature.non_persistent_buffers == ("inner.mask",)
        assert signature.inputs_to_buffers["b_inner_mask"] == "inner.mask"
        kinds = {spec.target: spec.persistent for spec in signature.input_specs}
        assert kinds["inner.mask"] is False and kinds["fc.running_mean"] is True
        assert kinds["fc.weight"] is None
        assert "inner.mask" not in each.state_dict and "fc.running_mean" in each.state_dict
        assert list(each.constants) == list(each.tensor_constants) == ["inner.mask"]
        assert [name for name, _ in each.named_buffers()] == list(signature.buffers)
        module = each.module()
        assert "inner.mask" in dict(module.named_buffers())
        assert set(module.state_dict()) == set(each.state_dict)
        assert torch.equal(module(x, k=k)["y"], model(x, k=k)["y"])
        module.inner.mask = torch.zeros(2)
        assert torch.equal(module(x, k=k)["y"].detach(), torch.ones(3, 2))
        assert each.call_spec.in_spec.num_leaves == 2 and each.call_spec.out_spec.num_leaves == 1
    with pytest.raises(NotImplementedError, match=r"use `program\.module\(\)`"):
        torch.export.unflatten(program)
