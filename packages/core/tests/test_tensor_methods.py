"""Queries of tensors, memory formats, storages, `set_` and `data`."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import plait_core as pc


# ---- memory formats ------------------------------------------------------------------------------
def test_channels_last_depends_on_strides() -> None:
    x = pc.arange(120).view(2, 3, 4, 5)
    y = x.contiguous(memory_format=pc.channels_last)
    assert y.stride() == (60, 1, 15, 3)
    assert y.tolist() == x.tolist()
    assert y.is_contiguous(memory_format=pc.channels_last)
    assert not y.is_contiguous()
    assert not x.is_contiguous(memory_format=pc.channels_last)
    assert x.is_contiguous(memory_format=pc.contiguous_format)
    assert y.contiguous(memory_format=pc.channels_last) is y
    assert y.dim_order() == (0, 2, 3, 1)
    z = pc.zeros(2, 3, 4, 5, 6).contiguous(memory_format=pc.channels_last_3d)
    assert z.stride() == (360, 1, 90, 18, 3)
    assert z.is_contiguous(memory_format=pc.channels_last_3d)


def test_formats_of_copies_and_new_tensors() -> None:
    x = pc.rand(2, 3, 4, 5).contiguous(memory_format=pc.channels_last)
    assert x.clone().stride() == x.stride()
    assert x.clone(memory_format=pc.contiguous_format).is_contiguous()
    assert (x + 1).stride() == x.stride()
    assert pc.empty(2, 3, 4, 5, memory_format=pc.channels_last).stride() == x.stride()
    for make in (pc.empty_like, pc.zeros_like, pc.ones_like):
        assert make(x).stride() == x.stride()
        assert make(x, memory_format=pc.contiguous_format).is_contiguous()
    assert pc.full_like(x, 2, memory_format=pc.contiguous_format).sum().item() == 240
    dense = x.to(memory_format=pc.contiguous_format)
    assert dense.is_contiguous() and dense.tolist() == x.tolist()
    assert dense.to(memory_format=pc.channels_last).stride() == x.stride()
    assert dense.double(memory_format=pc.channels_last).stride() == x.stride()
    assert x.to(pc.float64).stride() == x.stride()
    with pytest.raises(pc.ShapeError, match=r"`memory_format` channels_last requires 4 dimensions"):
        pc.zeros(2, 3).contiguous(memory_format=pc.channels_last)
    with pytest.raises(ValueError, match="contiguous: `memory_format` must be contiguous_format"):
        pc.zeros(2, 3).contiguous(memory_format="rows")
    with pytest.raises(ValueError, match="is_contiguous: `memory_format` must be"):
        pc.zeros(2, 3).is_contiguous(memory_format="rows")


def test_formats_are_themselves_after_pickling() -> None:
    for each in (pc.channels_last, pc.contiguous_format, pc.preserve_format, pc.strided):
        assert pickle.loads(pickle.dumps(each)) is each
    assert repr(pc.channels_last) == "plait.channels_last"
    assert pc.zeros(1).layout is pc.strided


# ---- to ------------------------------------------------------------------------------------------
def test_forms_of_to() -> None:
    x = pc.ones(2)
    for same in (x.to(), x.to("cpu"), x.to(pc.float32), x.to(x), x.to("cpu", pc.float32, False)):
        assert same is x
    for other in (
        x.to(pc.float64), x.to("float64"), x.to("cpu", pc.float64), x.to(dtype=pc.float64),
        x.to(pc.zeros(1, dtype=pc.float64)), x.to(other=pc.zeros(1, dtype=pc.float64)),
        x.to(None, pc.float64), x.to(device="cpu", dtype=pc.float64, non_blocking=True),
    ):  # fmt: skip
        assert other.dtype is pc.float64
    for fresh in (x.to(pc.float32, False, True), x.to("cpu", copy=True), x.to(x, copy=True)):
        assert fresh is not x and fresh.data_ptr() != x.data_ptr()
    for bad in ((3.5,), ("cpu", pc.float64, 1, 2, 3), (True,), ("nowhere",)):
        with pytest.raises((TypeError, ValueError, RuntimeError), match=r"to|device"):
            x.to(*bad)
    with pytest.raises(TypeError, match="unexpected keyword `shape`"):
        x.to(shape=3)
    with pytest.raises((RuntimeError, NotImplementedError, ValueError), match=r"cuda|device"):
        x.cuda()


def test_meta_tensors_have_shapes_only() -> None:
    x = pc.ones(2, 3).to("meta")
    assert x.is_meta and not x.is_cpu and x.shape == (2, 3)
    assert (x @ x.T).shape == (2, 2)
    for call in (x.sum().item, x.numpy, x.tolist, lambda: bool(x.sum()), lambda: x.to("cpu")):
        with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
            call()
    with pytest.raises(ValueError, match="add: all tensors must be on one device"):
        x + pc.ones(2, 3)
    with pytest.raises(BufferError, match="meta"):
        x.__dlpack__()


# ---- queries -------------------------------------------------------------------------------------
def test_answers() -> None:
    x = pc.zeros(2, 3)
    assert (x.get_device(), x.is_cpu, x.is_cuda, x.is_sparse, x.is_quantized) == (
        -1, True, False, False, False,
    )  # fmt: skip
    assert x.is_same_size(pc.ones(2, 3)) and not x.is_same_size(pc.ones(3, 2))
    assert x.is_set_to(x.view(2, 3)) and not x.is_set_to(x.view(3, 2))
    assert not x.is_set_to(pc.zeros(2, 3))
    assert (x.element_size(), x.nbytes, x.itemsize) == (4, 24, 4)
    assert x.pin_memory() is x and not x.is_pinned()
    assert x.resolve_conj() is x and not x.is_conj() and not x.is_neg()
    assert pc.ones(1).is_nonzero()
    assert [row.tolist() for row in reversed(pc.arange(2))] == [1, 0]
    assert x.T.dim_order() == (1, 0)
    assert x.allclose(pc.zeros(2, 3)) and x.equal(pc.zeros(2, 3))


def test_second_names() -> None:
    x = pc.arange(3)
    assert x.greater(1).tolist() == pc.greater(x, 1).tolist() == [False, False, True]
    assert x.less_equal(1).tolist() == [True, True, False]
    assert x.clone().not_equal_(1).tolist() == [1, 0, 1]
    assert x.where(x > 0, 7).tolist() == [7, 1, 2]


def test_shapes_of_others() -> None:
    x = pc.arange(6)
    assert x.view_as(pc.zeros(2, 3)).shape == x.reshape_as(pc.zeros(2, 3)).shape == (2, 3)
    assert pc.ones(1, 3).expand_as(pc.zeros(2, 3)).shape == (2, 3)
    assert pc.ones(4, 2, 3).sum_to_size(2, 1).tolist() == [[12.0], [12.0]]
    with pytest.raises(pc.ShapeError, match=r"sum_to_size: .*broadcast"):
        pc.ones(4, 2).sum_to_size(3)


def test_view_operators_in_place() -> None:
    x = pc.arange(6).view(2, 3)
    there = x.data_ptr()
    assert x.t_() is x and x.shape == (3, 2) and x.data_ptr() == there
    assert x.unsqueeze_(0).shape == (1, 3, 2)
    assert x.squeeze_(0).transpose_(0, 1).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_python_functions_on_elements() -> None:
    x = pc.tensor([[1, 2], [3, 4]])
    x.T.apply_(lambda value: value * 10)
    assert x.tolist() == [[10, 20], [30, 40]]
    x.map_(pc.tensor([1, 2]), lambda a, b: a + b)
    assert x.tolist() == [[11, 22], [31, 42]]
    assert pc.zeros(2).map2_(pc.ones(2), pc.ones(2), lambda a, b, c: a + b + c).tolist() == [2, 2]


# ---- storages ------------------------------------------------------------------------------------
def test_storages() -> None:
    x = pc.arange(6)
    storage = x[2:].untyped_storage()
    assert storage.nbytes() == len(storage) == 48
    assert storage.data_ptr() == x.data_ptr()
    assert storage is x.untyped_storage() and storage == x.view(2, 3).untyped_storage()
    assert storage != pc.arange(6).untyped_storage()
    assert storage[8] == 1 and storage[:2] == [0, 0]


def test_set() -> None:
    source = pc.arange(6.0)
    x = pc.empty(0).set_(source, 1, (2, 2), (1, 2))
    assert x.tolist() == [[1, 3], [2, 4]]
    source[1] = 9
    assert x[0, 0].item() == 9
    assert pc.empty(0).set_(source).is_set_to(source)
    assert pc.empty(0).set_(source.untyped_storage()).tolist() == source.tolist()
    assert x.set_().numel() == 0
    for arguments, error in (
        ((source, 4, (3,)), pc.ShapeError),
        ((source, -1, (1,)), ValueError),
        ((source, 0, (2,), (1, 1)), ValueError),
        ((pc.arange(3),), pc.DTypeError),
        ((3,), TypeError),
    ):
        with pytest.raises(error, match=r"set_|outside"):
            pc.empty(0).set_(*arguments)


def test_resize() -> None:
    x = pc.arange(4)
    there = x.data_ptr()
    assert x.resize_(3).tolist() == [0, 1, 2] and x.data_ptr() == there
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(100)[:4].tolist() == [0, 1, 2, 3]
    assert x.resize_as_(pc.zeros(2, 3)).shape == (2, 3)
    view = x[1:]
    with pytest.raises(RuntimeError, match=r"resize_: .* other tensors or arrays share it"):
        x.resize_(1000)
    del view
    with pytest.raises(ValueError, match="must not hold negative sizes"):
        x.resize_(2, -1)


# ---- pickle and deepcopy -------------------------------------------------------------------------
def copies(objects: Any) -> list[Any]:
    return [
        copy.deepcopy(objects),
        *(pickle.loads(pickle.dumps(objects, protocol)) for protocol in (2, 4, 5)),
    ]


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "bfloat16", "float64", "complex64"])
def test_copies_keep_dtypes(dtype: str) -> None:
    x = pc.tensor([[1, 0], [3, 4]]).to(dtype)
    for y in copies(x):
        assert y.dtype is x.dtype and y.tolist() == x.tolist()
        assert y.data_ptr() != x.data_ptr()


def test_copies_keep_strides() -> None:
    base = pc.arange(12).view(3, 4)
    for x in (base.T, base[::-1, ::2], pc.ones(1).expand(3, 4), base[:0], pc.tensor(3.0)):
        for y in copies(x):
            assert y.stride() == x.stride() and y.tolist() == x.tolist()


def test_copies_share_shared_objects() -> None:
    base = pc.zeros(2, 3)
    for both in copies({"base": base, "row": base[1]}):
        both["row"][0] = 7
        assert both["base"].tolist() == [[0, 0, 0], [7, 0, 0]]
    assert base.sum().item() == 0


def test_copies_keep_subclasses_and_attributes() -> None:
    x = Marked._make_subclass(Marked, pc.arange(3))
    x.name = "x"  # type: ignore[attr-defined]
    for y in copies(x):
        assert type(y) is Marked and y.name == "x" and y.tolist() == [0, 1, 2]  # type: ignore[attr-defined]


class Marked(pc.Tensor):
    """A tensor with attributes."""


def test_meta_tensors_are_copied_too() -> None:
    for y in copies(pc.empty(2, 3, device="meta")):
        assert y.is_meta and y.shape == (2, 3)


def test_sizes() -> None:
    size = pc.zeros(2, 3, 4).shape
    assert (
        size.numel() == 24
        and isinstance(size[1:], pc.Size)
        and isinstance(size + size[:1], pc.Size)
    )
    for again in copies(size):
        assert type(again) is pc.Size and again == size
    assert repr(size) == "plait.Size([2, 3, 4])"


# ---- versions ------------------------------------------------------------------------------------
def test_a_call_that_wrote_nothing_moves_no_version() -> None:
    x = pc.zeros(2, 3)
    for call in (
        lambda: x.copy_(pc.ones(4)),
        lambda: x.add_(pc.ones(4)),
        lambda: x.fill_("a"),
        lambda: x.add_(1j),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
        assert x._version == 0
    small = pc.empty(0, dtype=pc.int64)
    with pytest.raises(pc.DTypeError):
        pc.add(pc.ones(2), pc.ones(2), out=small)
    assert small.shape == (0,)


def test_memory_errors_say_the_available_memory() -> None:
    with pytest.raises(
        pc.OutOfMemoryError,
        match=r"empty: out of memory: 4.00 EiB \(\d+ bytes\) requested; .* are live in \d+ blocks, "
        r".* are cached, of which the largest free block has ",
    ):
        pc.empty(2**60)


def test_arrays_of_the_same_memory_are_the_same_storage() -> None:
    x = pc.zeros(4)
    again = pc.from_numpy(x.numpy()[1:])
    again += 1
    assert x._version == 1 and x.tolist() == [0, 1, 1, 1]
    pc.from_numpy(np.asarray(memoryview(x)))[0] = 5
    assert x._version == 2


@pytest.mark.parametrize(
    ("memory_format", "shape"),
    [(pc.channels_last, (2, 3, 4, 5)), (pc.channels_last_3d, (2, 3, 2, 4, 5))],
)
def test_joined_images_stay_channels_last(memory_format: Any, shape: tuple[int, ...]) -> None:
    x = pc.randn(*shape)
    y = x.contiguous(memory_format=memory_format)
    for dim in range(len(shape)):
        joined = pc.cat([y, y.narrow(dim, 0, 2).contiguous(memory_format=memory_format)], dim)
        assert joined.is_contiguous(memory_format=memory_format)
        assert joined.equal(pc.cat([x, x.narrow(dim, 0, 2)], dim))
        assert pc.cat([y, x], dim).is_contiguous()
    assert pc.cat([x, x], 1).is_contiguous()
    assert pc.cat([y.to(pc.float64), y]).is_contiguous(memory_format=memory_format)
    meta = y.to("meta")
    assert pc.cat([meta, meta], 1).stride() == pc.cat([y, y], 1).stride()
    thin = (
        pc.randn(*shape).narrow(1, 0, 1).contiguous()
    )  # in both formats: C order, as PyTorch says
    assert pc.cat([thin, thin], 1).is_contiguous()


def test_dim_order_that_is_not_unique() -> None:
    assert pc.zeros(2, 3).dim_order(ambiguity_check=True) == (0, 1)
    for shape in ((1, 2, 3), (2, 1, 1), (1,)):
        with pytest.raises(RuntimeError, match="order of the dimensions is not unique"):
            pc.zeros(*shape).dim_order(ambiguity_check=True)
    formats = [pc.contiguous_format, pc.channels_last]
    assert pc.zeros(1, 2, 3, 4).dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    with pytest.raises(RuntimeError, match="order of the dimensions is not unique"):
        pc.zeros(2, 1, 3, 4).dim_order(ambiguity_check=formats)
