"""`plait_torch`: private names that libraries import at their start."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

import plait_torch
from plait import nn


def test_lists_of_tensors(torch: Any) -> None:
    utils = torch._utils
    parts = [torch.ones(2, 2), torch.zeros(3)]
    flat = utils._flatten_dense_tensors(parts)
    assert flat.tolist() == [1, 1, 1, 1, 0, 0, 0]
    back = utils._unflatten_dense_tensors(flat, parts)
    assert [part.shape for part in back] == [(2, 2), (3,)]
    assert utils._element_size(torch.float64) == 8
    assert utils._get_device_index("cuda:1") == 1 and utils._get_device_index(3) == 3
    assert utils._get_device_index("cpu", allow_cpu=True) == -1
    for wrong in ("cpu", None):
        with pytest.raises(ValueError, match="a device with a number"):
            utils._get_device_index(wrong)
    assert utils._get_available_device_type() is utils._get_all_device_indices() is None
    assert utils._get_device_module("cuda") is torch.cuda
    assert utils._import_dotted_name("torch.nn.Linear") is torch.nn.Linear


def test_arguments_of_to(torch: Any) -> None:
    parse, cpu = torch._C._nn._parse_to, torch.device("cpu")
    assert parse("cpu") == parse(cpu) == (cpu, None, False, None)
    assert parse(torch.float64) == (None, torch.float64, False, None)
    assert parse("cpu", torch.int8, True) == (cpu, torch.int8, True, None)
    assert parse(torch.ones(1, dtype=torch.int8)) == (cpu, torch.int8, False, None)
    assert parse(device="meta", memory_format=torch.channels_last)[::3] == (
        torch.device("meta"),
        torch.channels_last,
    )
    with pytest.raises(TypeError, match=r"^to: a device"):
        parse(wrong=1)


def test_decorating_contexts(torch: Any) -> None:
    from torch.utils._contextlib import _DecoratorContextManager

    entered = []

    class Noted(_DecoratorContextManager):
        def __init__(self, name: str) -> None:
            self.name = name

        def clone(self) -> Noted:
            return Noted(self.name)

        def __enter__(self) -> None:
            entered.append(self.name)

        def __exit__(self, *error: object) -> None:
            entered.append("end")

    @Noted("a")
    def twice(x: int) -> int:
        return 2 * x

    assert twice(2) == 4 and entered == ["a", "end"] and twice.__name__ == "twice"


def test_names_that_are_imported_at_the_start(torch: Any) -> None:
    from torch._dynamo.eval_frame import OptimizedModule
    from torch.distributions.transforms import ExpTransform, _InverseTransform
    from torch.nn.modules import module as module_names
    from torch.nn.modules.lazy import LazyModuleMixin
    from torch.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys

    module = torch.nn.Linear(2, 3)
    assert isinstance(torch.compile(module), OptimizedModule)
    assert OptimizedModule is torch._dynamo.OptimizedModule
    result = module.load_state_dict({}, strict=False)
    assert isinstance(result, _IncompatibleKeys) and result.missing_keys == ["weight", "bias"]
    with module_names.register_module_forward_hook(lambda m, args, result: None):
        assert len(module_names._global_forward_hooks) == 1 and module_names._has_any_global_hook()
    assert not module_names._has_any_global_hook()
    handle = torch.utils.hooks.RemovableHandle(module._forward_hooks)
    module._forward_hooks[handle.id] = lambda m, args, result: result * 0
    assert module(torch.ones(2)).tolist() == [0.0] * 3
    handle.remove()
    assert isinstance(ExpTransform().inv, _InverseTransform)
    assert isinstance(torch.nn.LazyLinear(3), LazyModuleMixin)
    assert _EXTRA_STATE_KEY_SUFFIX == "_extra_state" and torch.serialization.DEFAULT_PROTOCOL == 2
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert torch.random.default_generator.initial_seed() == torch.initial_seed()
    assert not torch.profiler.kineto_available() and torch._tensor.Tensor is torch.Tensor
    assert type(torch.Tensor) is torch._C._TensorMeta
    assert torch._C._get_accelerator() == torch.device("cpu")
    assert torch.distributed.Backend("GLOO") == torch.distributed.Backend.GLOO
    with pytest.raises(ValueError, match=r"gather_object: there is no process group"):
        torch.distributed.gather_object(1)


def test_functions_do_not_bind_as_in_pytorch(torch: Any) -> None:
    class Layer:
        conv, act, dot = torch.conv2d, torch.tanh, torch.nn.functional.scaled_dot_product_attention

    x = torch.ones(1, 1, 3, 3)
    assert Layer().conv(x, weight=x).item() == 9
    assert Layer().act(x).shape == x.shape and Layer().dot(x, x, x).shape == x.shape
    assert torch.conv2d is torch.nn.functional.conv2d
    assert pickle.loads(pickle.dumps(torch.conv2d)) is torch.conv2d
    assert list(inspect.signature(torch.conv2d).parameters)[:2] == ["input", "weight"]
    with pytest.raises(TypeError, match="conv2d: `weight` must be a Tensor, got list"):
        Layer().conv(x, [1])


def test_operators_keep_attributes(torch: Any) -> None:
    functional = torch.nn.functional
    functional.sigmoid.__default_init__ = nn.init.xavier_uniform_
    assert functional.sigmoid.__default_init__ is nn.init.xavier_uniform_
    del functional.sigmoid.__default_init__
    assert not hasattr(functional.sigmoid, "__default_init__")


def test_state_of_a_compiler(torch: Any) -> None:
    assert torch._guards.active_fake_mode() is None
    assert torch._guards.detect_fake_mode([torch.ones(1)]) is None
    assert torch._guards.TracingContext.try_get() is None


def test_iterators_of_objects_like_loaders(torch: Any) -> None:
    dataloader = torch.utils.data.dataloader

    class Fake:
        _dataset_kind, _auto_collation = dataloader._DatasetKind.Iterable, False
        drop_last, _index_sampler = False, range(100)
        dataset = (3, 4, 5)

        def collate_fn(self, x: Any) -> Any:
            return x * 2

    for kind in (
        dataloader._SingleProcessDataLoaderIter, dataloader._MultiProcessingDataLoaderIter
    ):  # fmt: skip
        assert list(kind(Fake())) == [6, 8, 10]
    loader = torch.utils.data.DataLoader(range(3))
    assert isinstance(iter(loader), dataloader._BaseDataLoaderIter)


def test_containers_with_a_batch_are_samples_of_vmap(torch: Any) -> None:
    class Batch:
        def __init__(self, values: Any) -> None:
            self.values = values

        shape = property(lambda self: self.values.shape[:1])

        def dim(self) -> int:
            return 1

        def __getitem__(self, index: Any) -> Any:
            return Batch(self.values[index])

        def _add_batch_dim(self) -> None:
            raise AssertionError("the loop takes samples")

    x = torch.arange(6.0).reshape(3, 2)
    assert torch.vmap(lambda b: b.values.sum())(Batch(x)).tolist() == [1, 5, 9]


def test_callbacks_at_the_end_of_a_pass(torch: Any) -> None:
    queue = torch.autograd.Variable._execution_engine.queue_callback
    assert torch.autograd.variable.Variable._execution_engine.queue_callback == queue
    with pytest.raises(RuntimeError, match="only be installed during backward pass"):
        queue(print)
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen: list[Any] = []

    def hook(gradient: Any) -> None:
        assert torch._C._current_autograd_node() == y.grad_fn
        assert torch._C._will_engine_execute_node(y.grad_fn)
        number = torch._C._current_graph_task_id()
        queue(lambda: seen.append((x.grad.tolist(), torch._C._current_graph_task_id() == number)))

    y.register_hook(hook)
    y.sum().backward()
    assert seen == [([2, 2], True)]
    assert torch._C._current_graph_task_id() == -1 and torch._C._current_autograd_node() is None
    with pytest.raises(RuntimeError, match="during the backward pass"):
        torch._C._will_engine_execute_node(y.grad_fn)


def test_a_compiled_module_is_a_wrapper(torch: Any) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 1))
    result = torch.compile(module, backend="eager")
    assert type(result).__name__ == "OptimizedModule" and result._orig_mod is module
    assert list(result.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert [name for name, _ in result.named_modules()] == ["", "_orig_mod", "_orig_mod.0"]
    seen: list[str] = []
    module.register_forward_hook(lambda *_: seen.append("module"))
    result.register_forward_hook(lambda *_: seen.append("wrapper"))
    assert result(torch.ones(3, 2)).shape == (3, 1) and seen == ["module", "wrapper"]
    result.note = 5
    assert vars(module)["note"] == result.note == 5 and "note" not in vars(result)
    del result.note
    assert not hasattr(module, "note") and not hasattr(result, "note") and len(result) == 1
    result.eval()
    assert not module.training and not result.training and not module[0].training
    assert result.double() is result and module[0].weight.dtype == torch.float64
    other = pickle.loads(pickle.dumps(copy.deepcopy(torch.compile(torch.nn.Linear(2, 1)))))
    assert type(other) is type(result) and other.in_features == 2
    assert "_orig_mod" in dir(result) and repr(result).startswith("OptimizedModule(\n  (_orig_mod)")
    assert torch.compile(mode="default")(module)._orig_mod is module


def test_texts_name_torch(torch: Any) -> None:
    assert (str(torch.float32), f"{torch.int8}") == ("torch.float32", "torch.int8")
    x = torch.eye(2)
    assert torch.is_tensor(x) and torch.is_tensor(x.to_sparse()) and not torch.is_tensor(1.0)
    assert (str(x.shape), str(x.layout)) == ("torch.Size([2, 2])", "torch.strided")
    assert str(x.to_sparse().layout) == repr(torch.sparse_coo) == "torch.sparse_coo"
    assert str(torch.channels_last) == "torch.channels_last"
    for each in (torch.float32, torch.sparse_coo, torch.channels_last):
        assert pickle.loads(pickle.dumps(each)) is each
    with plait_torch.installed():
        pass
    assert str(torch.float32) == "torch.float32"


def test_the_engine_runs_passes(torch: Any) -> None:
    run = torch.autograd.Variable._execution_engine.run_backward
    x = torch.ones(2, requires_grad=True)
    y, one = (x * 2).sum(), torch.ones(())
    assert run((y,), (one,), True, False, (x,))[0].tolist() == [2, 2] and x.grad is None
    run((y,), (one,), False, False, (), allow_unreachable=True, accumulate_grad=True)
    assert x.grad.tolist() == [2, 2]
    assert torch.autograd.Variable._execution_engine.is_checkpoint_valid()


def test_variables_are_tensors(torch: Any) -> None:
    assert torch.autograd.Variable().shape == (0,)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        torch.autograd.Variable([1.0])
