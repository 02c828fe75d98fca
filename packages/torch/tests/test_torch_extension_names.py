"""Private names that optimizers, schedulers, loaders and modules of others import."""

from __future__ import annotations

import io
from typing import Any

import pytest


def test_optimizers_of_others(torch: Any) -> None:
    from torch.optim import optimizer

    class Grad(torch.optim.Optimizer):
        def __init__(self, params: Any, differentiable: bool) -> None:
            super().__init__(params, {"differentiable": differentiable})

        @optimizer._use_grad_for_differentiable
        @optimizer._disable_dynamo_if_unsupported()
        def step(self, closure: Any = None) -> bool:
            return torch.is_grad_enabled()

    x = torch.ones(1, requires_grad=True)
    assert not Grad([x], False).step() and Grad([x], True).step()
    assert Grad.step.__name__ == "step"
    assert optimizer._default_to_fused_or_foreach([x], False) == (False, False)
    assert optimizer._get_value(torch.tensor(3)) == optimizer._to_scalar(3) == 3
    assert optimizer._dispatch_sqrt(4.0) == 2 and optimizer._dispatch_sqrt(x).item() == 1
    assert optimizer._stack_if_compiling(5) == 5
    assert optimizer._get_scalar_dtype() is torch.float32
    params, states = [torch.ones(2) * 1j, x], [torch.zeros(2) * 1j, x]
    optimizer._view_as_real(params, states)
    assert params[0].shape == states[0].shape == (2, 2) and params[1] is states[1] is x


def test_schedulers_of_others(torch: Any) -> None:
    from torch.optim.lr_scheduler import Counter, Optimizer, _enable_get_lr_call

    scheduler = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1)], lr=1.0), 1)
    with _enable_get_lr_call(scheduler):
        assert scheduler._get_lr_called_within_step
    assert not scheduler._get_lr_called_within_step
    assert Optimizer is torch.optim.Optimizer and Counter("aa") == {"a": 2}


def test_parts_of_loaders(torch: Any) -> None:
    from torch.utils.data._utils.collate import np_str_obj_array_pattern
    from torch.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
    from torch.utils.data.dataloader import _DatasetKind, _InfiniteConstantSampler

    whole = _DatasetKind.create_fetcher(_DatasetKind.Map, [5, 6, 7], True, tuple, False)
    assert isinstance(whole, _MapDatasetFetcher) and whole.fetch([0, 2]) == (5, 7)
    assert _MapDatasetFetcher([5, 6], False, str).fetch(1) == "6"

    class Several(list[int]):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [-self[i] for i in indices]

    assert _MapDatasetFetcher(Several([1, 2]), True, list).fetch([0, 1]) == [-1, -2]
    for drop, expected in ((False, [[0, 1], [2]]), (True, [[0, 1]])):
        part = _DatasetKind.create_fetcher(_DatasetKind.Iterable, range(3), True, list, drop)
        assert isinstance(part, _IterableDatasetFetcher)
        assert [part.fetch([None, None]) for _ in expected] == expected
        with pytest.raises(StopIteration):
            part.fetch([None, None])
    assert _IterableDatasetFetcher(range(3), False, str, False).fetch(None) == "0"
    assert next(iter(_InfiniteConstantSampler())) is None
    assert np_str_obj_array_pattern.search("U") and not np_str_obj_array_pattern.search("f")


def test_members_by_name(torch: Any) -> None:
    from torch.nn.utils._named_member_accessor import swap_tensor

    layer = torch.nn.BatchNorm1d(2)
    weight, mean = layer.weight, layer.running_mean
    assert swap_tensor(layer, "weight", torch.zeros(2)) is weight and layer.weight.sum() == 0
    assert swap_tensor(layer, "weight", weight).sum() == 0 and layer.weight is weight
    assert swap_tensor(layer, "running_mean", torch.ones(2)) is mean
    assert swap_tensor(layer, "other", mean, allow_missing=True) is None and layer.other is mean
    assert swap_tensor(layer, "other", weight) is mean
    for error, args in (
        (TypeError, (3, "weight", mean)),
        (KeyError, (layer, "a.b", mean)),
        (AttributeError, (layer, "nothing", mean)),
    ):
        with pytest.raises(error, match="swap_tensor"):
            swap_tensor(*args)


def test_parts_of_modules(torch: Any) -> None:
    from torch.nn.modules.module import T, _forward_unimplemented, _grad_t
    from torch.nn.modules.normalization import _shape_t
    from torch.nn.modules.rnn import apply_permutation
    from torch.nn.modules.utils import _list_with_default

    assert T.__bound__ is torch.nn.Module and _grad_t is not None and _shape_t is not None
    with pytest.raises(NotImplementedError, match="Linear: a module must define `forward`"):
        _forward_unimplemented(torch.nn.Linear(1, 1))
    assert _list_with_default(4, [1, 2]) == 4 and _list_with_default((None, 5), (1, 2, 3)) == [2, 5]
    with pytest.raises(ValueError, match="more than 2 sizes"):
        _list_with_default((None, 5), (1, 2))
    result = apply_permutation(torch.arange(6).reshape(2, 3), torch.tensor([2, 0, 1]))
    assert result.tolist() == [[2, 0, 1], [5, 3, 4]]


def test_parts_of_files(torch: Any) -> None:
    file = io.BytesIO()
    torch.save(torch.ones(1), file)
    serialization = torch.serialization
    file.seek(0)
    assert serialization._is_zipfile(file) and file.tell() == 0
    assert not serialization._is_zipfile(io.BytesIO(b"text"))
    storage = torch.ones(1).untyped_storage()
    assert serialization.default_restore_location(storage, "cpu") is storage
    assert serialization.location_tag(storage) == "cpu"
    with pytest.raises(RuntimeError, match="'cpu' is required"):
        serialization.default_restore_location(storage, "cuda:0")
    assert issubclass(serialization.SourceChangeWarning, Warning)
    assert serialization.FILE_LIKE is serialization.FileLike


def test_caught_errors_and_dispatch(torch: Any) -> None:
    from torch._jit_internal import Final, boolean_dispatch, is_scripting

    class Special(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(one, two)

    for error, raised in ((ValueError("told"), ValueError), (Special(1, 2), RuntimeError)):
        try:
            raise error
        except Exception:
            caught = torch._utils.ExceptionWrapper(where="in thread 3")
        with pytest.raises(raised, match=f"Caught {type(error).__name__} in thread 3"):
            caught.reraise()
    pick = boolean_dispatch(
        "up", 1, True, lambda x, up=True: "up", lambda x, up: "down", "", "pick"
    )
    assert pick(1) == "up" and pick(1, False) == "down" and pick(1, up=False) == "down"
    assert not is_scripting() and Final is torch.jit.Final and pick.__name__ == "pick"


def test_further_names(torch: Any) -> None:
    from torch.amp.grad_scaler import OptState
    from torch.autograd.function import InplaceFunction
    from torch.cuda.amp.grad_scaler import GradScaler
    from torch.distributions.transforms import _clipped_sigmoid
    from torch.utils._pytree import _list_flatten, _list_flatten_with_keys, _list_unflatten
    from torch.utils.data.dataloader import _collate_fn_t

    assert [each.name for each in OptState] == ["READY", "UNSCALED", "STEPPED"]
    assert issubclass(InplaceFunction, torch.autograd.Function) and _collate_fn_t is not None
    assert GradScaler is torch.cuda.amp.GradScaler
    low, high = _clipped_sigmoid(torch.tensor([-200.0, 200.0]))
    assert 0 < low < 1e-30 and 0.999 < high < 1
    assert _list_unflatten(*_list_flatten([1, 2])) == [1, 2]
    assert _list_flatten_with_keys([3])[0][0][0].idx == 0
    assert torch.DeviceObjType is torch.device and torch.distributed.ReduceOp.BXOR.name == "BXOR"


def test_other_places_of_names(torch: Any) -> None:
    import torch._VF as _VF
    from torch._lowrank import svd_lowrank
    from torch._vmap_internals import vmap
    from torch.types import IntLikeType, _device

    assert _VF.lstm is torch.lstm and svd_lowrank is torch.svd_lowrank and vmap is torch.func.vmap
    assert _device is torch.device and IntLikeType is int
    with pytest.raises((ModuleNotFoundError, RuntimeError)):  # no pynvml, or no device
        torch.cuda.utilization()
    assert issubclass(torch.cuda.CudaError, RuntimeError)
