"""`plait_torch`: what the tests of libraries use besides what the libraries themselves do."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest


def test_graphs_grow_from_the_call_that_says_where(torch: Any) -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(x)
    with graph.inserting_after(x):
        graph.call_function(torch.relu, (x,))
        graph.call_function(torch.sigmoid, (x,))
    assert [node.name for node in graph.nodes] == ["x", "sigmoid", "relu", "output"]
    graph.inserting_before(list(graph.nodes)[-1])  # without a block: from here on
    graph.call_function(torch.sin, (x,))
    with graph.inserting_before():
        graph.call_function(torch.log, (1,))
    graph.call_function(torch.cos, (x,))
    names = [node.name for node in graph.nodes]
    assert names == ["log", "x", "sigmoid", "relu", "sin", "cos", "output"]


def test_a_program_writes_trace_anew(torch: Any) -> None:
    import torch.fx._symbolic_trace as steps

    class Tracer(torch.fx.Tracer):
        def trace(self, root: Any, concrete_args: Any = None) -> Any:
            self.root, self.graph = root, torch.fx.Graph(tracer_cls=type(self))
            self.submodule_paths = {module: name for name, module in root.named_modules()}
            call = type(root).forward
            assert isinstance(call, steps.FunctionType)
            function, args = self.create_args_for_root(call, True, concrete_args)
            proxies: dict[str, Any] = {}

            def read(module: Any, name: str) -> Any:
                return self.getattr(name, steps._orig_module_getattr(module, name), proxies)

            def called(module: Any, *args: Any, **kwargs: Any) -> Any:
                def forward(*args: Any, **kwargs: Any) -> Any:
                    return steps._orig_module_call(module, *args, **kwargs)

                return self.call_module(module, forward, args, kwargs)

            with steps._Patcher() as patcher:
                patcher.patch_method(torch.nn.Module, "__getattr__", read, deduplicate=False)
                patcher.patch_method(torch.nn.Module, "__call__", called, deduplicate=False)
                steps._patch_wrapped_functions(patcher)
                steps._autowrap_check(patcher, function.__globals__, self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(function(*args)),), {})
            return self.graph

    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    before = torch.nn.Module.__call__, torch.nn.Module.__getattr__
    graph = Tracer().trace(net)
    assert [node.op for node in graph.nodes] == ["placeholder", *["call_module"] * 2, "output"]
    assert (torch.nn.Module.__call__, torch.nn.Module.__getattr__) == before
    x = torch.randn(1, 2)
    assert torch.equal(torch.fx.GraphModule(net, graph)(x), net(x))
    assert not isinstance(net, steps.ScriptObject)


def test_comparisons_with_rules_of_a_program(torch: Any) -> None:
    from torch.testing import _comparison as comparison

    kinds = (
        comparison.NonePair,
        comparison.BooleanPair,
        comparison.NumberPair,
        comparison.TensorLikePair,
    )

    def errors(actual: Any, expected: Any, **options: Any) -> list[str]:
        result = comparison.not_close_error_metas(actual, expected, pair_types=kinds, **options)
        return [str(error.to_error()) for error in result]

    a = torch.tensor([1.0, 2.0])
    assert not errors({"a": [a, None, True, 1.0]}, {"a": [a + 1e-7, None, True, 1.0 + 1e-9]})
    (text,) = errors([a], [a + 1])
    assert text.startswith("Tensor-likes are not close!") and "item [0]" in text
    assert "1 of 2" not in text and "2 of 2 elements differ" in text
    assert not errors(a, a + 1, rtol=0.0, atol=1.0)
    for actual, expected, word in (
        (a, a.double(), "dtype"),
        (a, a[:1], "shape"),
        (None, 1, "None mismatch"),
        (True, False, "Booleans mismatch"),
        (1.0, 2.0, "Scalars are not close"),
        ([1], [1, 2], "length"),
        ({"a": 1}, {"b": 1}, "keys"),
        (object(), object(), "No comparison pair"),
    ):
        assert any(word in line for line in errors(actual, expected)), (actual, expected)
    assert not errors(float("nan"), float("nan"), equal_nan=True)

    class Near(comparison.TensorLikePair):
        def compare(self) -> None:
            if abs(self.actual - self.expected).mean() > 1:
                self._fail(AssertionError, "far")

    (error,) = comparison.not_close_error_metas(a, a + 3, pair_types=(Near,))
    with pytest.raises(AssertionError, match=r"^too far$"):
        raise error.to_error(lambda text: f"too {text}")


def test_states_of_models(torch: Any) -> None:
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_model_state_dict,
        set_model_state_dict,
    )

    net = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    state = get_model_state_dict(net, options=StateDictOptions(full_state_dict=True))
    assert list(state) == ["weight", "bias"]
    result = set_model_state_dict(
        net, {"bias": torch.ones(1)}, options=StateDictOptions(strict=False)
    )
    assert result.missing_keys == ["module.weight"] and net.module.bias.item() == 1
    with pytest.raises(RuntimeError, match="weight"):
        set_model_state_dict(net, {"bias": torch.ones(1)})
    net.module.bias.requires_grad_(False)
    left = get_model_state_dict(net, options=StateDictOptions(ignore_frozen_params=True))
    assert list(left) == ["weight"]


def test_small_names(torch: Any) -> None:
    tree = torch.utils._pytree
    assert tree.tree_map(lambda size: size + 1, torch.ones(2, 3).shape) == (3, 4)
    weight = torch.empty(1000)
    torch.nn.init._no_grad_uniform_(weight, 2.0, 3.0)
    assert weight.min() >= 2 and weight.max() <= 3
    assert torch.nn.init._no_grad_fill_(weight, 4.0).unique().tolist() == [4]
    offsets = torch.tensor([0, 1, 3])
    summed = torch._segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", offsets=offsets)
    assert summed.tolist() == [1, 5]
    part = weight.new(weight.untyped_storage())
    assert part.shape == (1000,) and part.data_ptr() == weight.data_ptr()
    shared = weight.new(weight.untyped_storage()._new_shared(8))
    assert shared.shape == (2,) and shared.is_shared()
    shares = torch._sample_dirichlet(torch.full((5, 3), 2.0))
    assert shares.shape == (5, 3) and torch.allclose(shares.sum(-1), torch.ones(5))
    x = torch.ones(1, requires_grad=True)
    assert x._cdata == x._cdata != torch.ones(1)._cdata
    with pytest.raises(ValueError, match="no"):
        torch._check_tensor_all_with(ValueError, torch.tensor([True, False]), lambda: "no")
    values = torch.testing.make_tensor(
        (1, 2, 3, 4), dtype=torch.float32, memory_format=torch.channels_last
    )
    assert values.is_contiguous(memory_format=torch.channels_last)

    from torch._jit_internal import _copy_to_script_wrapper
    from torch.fx.experimental.symbolic_shapes import free_symbols, guard_or_false
    from torch.utils.data.datapipes.iter.combinatorics import ShufflerIterDataPipe

    assert _copy_to_script_wrapper(len) is len
    assert guard_or_false(3 > 2) is True and free_symbols(3) == set()
    pipe = torch.utils.data.datapipes.iter.IterableWrapper([1, 2]).shuffle()
    assert isinstance(pipe, ShufflerIterDataPipe) and pipe._shuffle_enabled
    assert not pipe.set_shuffle(False)._shuffle_enabled


def test_a_layer_on_a_sparse_matrix(torch: Any) -> None:
    x = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    weight, bias = torch.arange(12.0).reshape(4, 3).requires_grad_(), torch.ones(4)
    for argument in ((weight,), (weight, bias)):
        ours = torch.nn.functional.linear(x.to_sparse(), *argument)
        assert torch.equal(ours, torch.nn.functional.linear(x, *argument))
    (gradient,) = torch.autograd.grad(ours.sum(), weight)
    assert gradient[0].tolist() == [1, 3, 2]


def test_hparams_are_three_records(torch: Any) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard.summary import hparams

    tags = [record.value[0].tag for record in hparams({"lr": 0.1}, {"loss": 1.0})]
    assert tags == [
        f"_hparams_/{word}" for word in ("experiment", "session_start_info", "session_end_info")
    ]


def test_a_closed_summary_writer_opens_another_file(torch: Any, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path)
    writer.add_scalar("a", 1.0, 0)
    for _ in range(2):
        writer.close()
        writer.flush()
    assert len(list(tmp_path.iterdir())) == 1
    writer.add_scalar("a", 2.0, 1)
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2


def test_workers_of_a_loader_know_torch(tmp_path: pathlib.Path) -> None:
    (tmp_path / "samples.py").write_text(
        "import torch\n"
        "class Samples(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return torch.tensor(i)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "from samples import Samples\n"
        "loader = torch.utils.data.DataLoader(Samples(), batch_size=2, num_workers=1)\n"
        "print([batch.tolist() for batch in loader])\n"
    )
    command = [sys.executable, "-m", "plait_torch", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.stdout.strip() == "[[0, 1], [2, 3]]", done.stderr


def test_paths_of_files_and_tables_of_quantized_operators(torch: Any, tmp_path: Any) -> None:
    from torch._utils_internal import (
        get_file_path_2,
        get_writable_path,
        resolve_library_path,
    )

    path = get_file_path_2(str(tmp_path), "assets", "image.png")
    assert pathlib.Path(path) == tmp_path / "assets" / "image.png"
    assert get_writable_path(str(tmp_path)) == str(tmp_path)
    assert resolve_library_path(path) == str(pathlib.Path(path).resolve())
    quantized = torch.ops.quantized
    table = {quantized.conv2d: "conv2d", quantized.conv2d_relu: "both"}
    assert table[quantized.conv2d] == "conv2d"
    with pytest.raises(NotImplementedError, match=r"torch.ops.quantized.conv2d: .* float32"):
        quantized.conv2d(torch.ones(1))
    assert not hasattr(torch.ops.quantized, "__path__")


def test_tensors_have_other_names_of_public_attributes(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    assert x._grad is None and x._grad_fn is None
    y = (2 * x).sum()
    assert type(y._grad_fn) is type(y.grad_fn) and y._grad_fn is not None
    y.backward()
    assert x._grad is x.grad and x._grad.tolist() == [2.0, 2.0]
    x._grad = None
    assert x.grad is None
    x._grad = torch.zeros(2)
    assert x.grad.tolist() == [0.0, 0.0]
    parameter = torch.nn.Parameter(torch.ones(1))
    parameter._grad = torch.ones(1)
    assert parameter.grad.item() == 1
    z = torch.tensor([1 + 2j])
    assert z._conj().tolist() == z._conj_physical().tolist() == [1 - 2j]
    mask = torch.tensor([True, False])
    assert not mask._is_all_true() and mask._is_any_true()
    assert x._fix_weakref() is None
    assert not x._is_zerotensor() and not x._has_symbolic_sizes_strides
