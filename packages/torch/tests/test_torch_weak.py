"""`torch.utils.weak`, `swap_tensors`, rebuilt tensors, and queries about transforms."""

from __future__ import annotations

import gc
from typing import Any

import pytest


def test_dicts_whose_keys_are_freed(torch: Any) -> None:
    from torch.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef

    x, y = torch.ones(2), torch.ones(2)
    names = WeakIdKeyDictionary({x: "x"})
    names[y] = "y"
    assert names[x] == "x" and len(names) == 2 and [names[key] for key in names] == ["x", "y"]
    assert x in names and torch.ones(2) not in names and 3 not in names
    copied = names.copy()
    del names[y]
    assert y not in names and y in copied and repr(names) == "<WeakIdKeyDictionary of 1 entries>"
    with pytest.raises(KeyError):
        _ = names[y]
    reference, one, two = TensorWeakRef(x), WeakIdRef(x), WeakIdRef(x)
    assert reference() is x and one == two and hash(one) == hash(two) and one != WeakIdRef(y)
    assert one != x
    del x
    gc.collect()
    assert reference() is None and len(names) == 0 and len(copied) == 1 and one != two


def test_swapped_tensors(torch: Any) -> None:
    one, two = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(3))
    two.note, two.grad = "note", torch.full((3,), 5.0)
    torch.utils.swap_tensors(one, two)
    assert one.tolist() == [0, 0, 0] and two.tolist() == [1, 1] and one.note == "note"
    assert one.grad.tolist() == [5, 5, 5] and two.grad is None and not hasattr(two, "note")
    a, b = torch.ones(1, requires_grad=True), torch.zeros(2, dtype=torch.int64)
    torch.utils.swap_tensors(a, b)
    assert b.requires_grad and not a.requires_grad and a.dtype is torch.int64
    with pytest.raises(TypeError, match="one class"):
        torch.utils.swap_tensors(one, torch.ones(1))
    with pytest.raises(RuntimeError, match="history"):
        torch.utils.swap_tensors(b, b * 2)


def test_rebuilt_tensors(torch: Any) -> None:
    utils, x = torch._utils, torch.arange(6)
    result = utils._rebuild_tensor_v2(x.storage(), 1, (2, 2), (3, 1), False, {})
    assert result.tolist() == [[1, 2], [4, 5]] and result.data_ptr() == x[1:].data_ptr()
    assert utils._rebuild_tensor(x.storage(), 0, (), ()).item() == 0
    assert isinstance(x.storage(), torch.storage.TypedStorage)
    assert isinstance(x.untyped_storage(), torch.storage.UntypedStorage)


def test_queries_about_transforms(torch: Any) -> None:
    functorch, x = torch._C._functorch, torch.ones(1)
    assert not functorch.is_batchedtensor(x) and not functorch.is_gradtrackingtensor(x)
    assert functorch.maybe_get_level(x) == functorch.maybe_get_bdim(x) == -1
    assert functorch.get_unwrapped(x) is functorch.unwrap_if_dead(x) is x
    assert functorch.peek_interpreter_stack() is None
    from torch._functorch.vmap import _broadcast_to_and_flatten, _get_name, tree_flatten, vmap

    assert _get_name(len) == "len" and vmap is torch.func.vmap
    assert _broadcast_to_and_flatten(0, tree_flatten([1, 2])[1]) == [0, 0]
    with pytest.raises(NotImplementedError, match=r"torch\.func"):
        functorch._add_batch_dim(x, 0, 1)


def test_uninitialized_tensors(torch: Any) -> None:
    from torch.nn.parameter import UninitializedBuffer, UninitializedTensorMixin

    assert isinstance(torch.nn.LazyLinear(2).weight, UninitializedTensorMixin)
    assert isinstance(UninitializedBuffer(), UninitializedTensorMixin)
    assert not isinstance(torch.ones(1), UninitializedTensorMixin)
    assert issubclass(UninitializedBuffer, UninitializedTensorMixin)


def test_operators_by_name(torch: Any) -> None:
    from torch._ops import OpOverload, OpOverloadPacket

    add = torch.ops.aten.add
    assert isinstance(add, OpOverloadPacket) and not isinstance(add, OpOverload)
    assert isinstance(add.Tensor, OpOverload) and add.Tensor is torch.ops.aten.add.Tensor
    assert add.Tensor.overloadpacket is add and add.Tensor.name() == "aten::add.Tensor"
    assert add.default.name() == "aten::add" and add.Tensor.namespace == "aten"
    assert str(add) == "aten.add" and str(add.Tensor) == "aten.add.Tensor"
    assert add.Tensor(torch.ones(1), 2).item() == 3 and add.__name__ == "add"
    with pytest.raises(AttributeError):
        _ = add.Tensor.nothing
