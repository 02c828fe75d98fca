"""Numerical corner cases: overflow, large logits, poles, layouts of copies."""

from __future__ import annotations

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

NAN = float("nan")


def test_logarithms_of_large_numbers_keep_their_differences() -> None:
    x = pc.tensor([[1e8, 1e8, 1e8], [1e4, 1e4, 1e4 + 1]])
    want = [[-np.log(3)] * 3, [-1.5514, -1.5514, -0.5514]]
    np.testing.assert_allclose(pc.log_softmax(x, 1).numpy(), want, atol=1e-3)
    np.testing.assert_allclose(
        operator("cross_entropy")(x, pc.tensor([0, 2]), reduction="none").numpy(),
        [np.log(3), 0.5514],
        atol=1e-3,
    )
    assert pc.log_softmax(pc.tensor([float("inf"), 1.0]), 0).isnan().all().item()


def test_a_tensor_without_values_is_not_copied() -> None:
    x = pc.zeros(3)
    with pytest.raises(NotImplementedError, match=r"copy_.*`src`.*meta"):
        x.copy_(pc.empty(3, device="meta"))
    with pytest.raises(NotImplementedError, match="meta"):
        x[:] = pc.empty(3, device="meta")


@pytest.mark.parametrize("value", [300, -1, NAN, 3e9])
def test_numbers_that_do_not_fit_are_refused(value: float) -> None:
    x = pc.zeros(2, dtype=pc.uint8)
    mask = pc.tensor([True, False])
    for write in (
        lambda: x.fill_(value),
        lambda: x.index_fill(0, pc.tensor([0]), value),
        lambda: pc.scatter(x, 0, pc.tensor([0]), value),
        lambda: x.__setitem__(0, value),
        lambda: x.__setitem__(mask, value),
        lambda: x.__setitem__([0], value),
        lambda: pc.full((2,), value, dtype=pc.uint8),
    ):
        with pytest.raises(ValueError, match=r"`values?` must fit in uint8"):
            write()
    if isinstance(value, int):
        with pytest.raises(ValueError, match="must fit in uint8"):
            x.masked_fill(mask, value)
        with pytest.raises(ValueError, match="must fit in uint8"):
            pc.where(mask, x, value)
        with pytest.raises(ValueError, match="must fit in uint8"):
            x.clamp(value, 400)
    assert x.tolist() == [0, 0]


def test_a_complex_number_is_not_written_into_real_ones() -> None:
    x = pc.zeros(2)
    with pytest.raises(TypeError, match="2j"):
        x[0] = 2j


def test_poles() -> None:
    x = pc.tensor([-1e-20, -1e-15], dtype=pc.float64)
    assert pc.digamma(x).tolist() == pytest.approx([1e20, 1e15], rel=1e-12)
    assert pc.polygamma(1, x).tolist() == pytest.approx([1e40, 1e30], rel=1e-12)


def test_copies_of_expanded_tensors_are_in_order() -> None:
    x = pc.ones(3).expand(2, 3)
    assert x.clone().stride() == (3, 1)
    assert x.double().view(-1).shape == (6,)
    assert pc.zeros(2, 3).t().clone().stride() == (1, 3)
    assert pc.zeros(4, 1, 3, 2).permute(0, 3, 1, 2).clone().stride()[1] == 1


def test_functions_know_their_first_tensor_as_input() -> None:
    x = pc.ones(2, 2)
    assert pc.sum(input=x).item() == 4
    assert pc.matmul(input=x, other=x).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with pytest.raises(TypeError, match="twice"):
        x.sum(input=x)  # type: ignore[call-overload, unused-ignore]


def test_empty_dimensions_and_no_dimensions() -> None:
    assert [tuple(part.shape) for part in pc.ones(0, 2).chunk(3)] == [(0, 2)] * 3
    assert pc.tensor(5).movedim(0, 0).item() == 5
    assert pc.arange(-1.5, 2, 1, dtype=pc.int32).tolist() == [-1, 0, 1, 2]
    assert not pc.isclose(pc.tensor([2**62]), pc.tensor([2**62 + 1]), rtol=0, atol=0).item()


def test_factors_of_integers_are_not_cut_off() -> None:
    x = pc.arange(4)
    for call in (
        lambda: pc.add(x, x, alpha=0.5),
        lambda: pc.sub(x, 1, alpha=2.0),
        lambda: pc.rsub(x, x, alpha=0.5),
        lambda: x.add_(x, alpha=0.5),
        lambda: pc.add(x > 1, x > 1, alpha=0.5),
        lambda: pc.addr(pc.ones(4, 4, dtype=pc.int64), x, x, alpha=0.5),
    ):
        with pytest.raises(TypeError, match=r"`alpha` must be .*integer.*got .*(0\.5|2\.0)"):
            call()
    with pytest.raises(TypeError, match="`alpha` must be a number for int64"):
        pc.add(x, x, alpha=True)
    assert x.tolist() == [0, 1, 2, 3]
    assert pc.add(x, x, alpha=2).tolist() == [0, 3, 6, 9]
    assert pc.add(x > 2, x > 1, alpha=True).tolist() == [False, False, True, True]


def test_numbers_in_0d_tensors_meet_halves_unrounded() -> None:
    x = pc.tensor([1.0, 2.0, 1000.0], dtype=pc.float16)
    large, third = pc.tensor(1e5), pc.tensor(1 / 3, dtype=pc.float64)
    assert (x / large).tolist() == (x / 1e5).tolist() != [0.0, 0.0, 0.0]
    assert (x * third).tolist() == (x * (1 / 3)).tolist() == (third * x).tolist()
    assert (x // third).tolist() == (x // (1 / 3)).tolist()
    assert (x / pc.tensor(100000)).tolist() == (x / 100000).tolist()
    assert x.clone().div_(large).tolist() == (x / 1e5).tolist()
    assert (x * third).dtype is pc.float16


def test_variances_of_large_numbers() -> None:
    same = pc.full((1000,), 1e30)
    assert same.var().item() == 0 and same.std().item() == 0
    assert pc.tensor([1e200, 2e200], dtype=pc.float64).var().item() == float("inf")
    x = pc.tensor([1e20, 2e20, 3e20] * 20)
    assert x.std(correction=0).item() == pytest.approx(np.std([1e20, 2e20, 3e20]), rel=1e-6)
    assert pc.tensor([float("inf"), 1.0]).var().isnan().item()


def test_meta_tensors_are_indexed_by_anything() -> None:
    x = pc.empty(3, 4, device="meta")
    for key, shape in (
        ([0, 1], (2, 4)),
        ((slice(None), [0, 1]), (3, 2)),
        (pc.tensor([0, 2]), (2, 4)),
        (np.array([[0], [1]]), (2, 1, 4)),
        (pc.tensor([True, False, True]), (2, 4)),
        (pc.empty(5, dtype=pc.int64, device="meta"), (5, 4)),
    ):
        result = x[key]  # type: ignore[index]
        assert result.device.type == "meta" and result.shape == shape
    x[[0]] = 1.0
    assert pc.histc(x, 5).shape == (5,)
    assert pc.tril_indices(3, 4, device="meta").shape == (2, 6)
    assert pc.nonzero_static(x, size=5).shape == (5, 2)
    assert pc.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]


def test_keywords_with_the_default_meaning() -> None:
    assert pc.zeros(2, layout=pc.strided, pin_memory=False).tolist() == [0, 0]
    assert pc.rand(2, layout=pc.strided).layout is pc.strided
    with pytest.raises(TypeError, match=r"zeros: `layout` must be strided.*to_sparse"):
        pc.zeros(2, layout=pc.sparse_coo)
    x = pc.zeros(2, pin_memory=True)  # there is no accelerator to pin for
    assert x.tolist() == [0, 0] and not x.is_pinned()
    with pytest.raises(TypeError, match="empty: `pin_memory` must be a bool or None"):
        pc.empty(2, pin_memory=1)
    with pytest.raises(TypeError, match="unexpected keyword `layout`"):
        pc.add(pc.ones(2), 1, layout=pc.strided)
    x = pc.zeros(2, 3, 4, 5)
    for result in (
        pc.rand_like(x, memory_format=pc.channels_last),
        pc.randn_like(x, memory_format=pc.channels_last),
        pc.randint_like(x, 5, memory_format=pc.channels_last),
        pc.randint_like(x, 2, 5, memory_format=pc.channels_last),
    ):
        assert result.is_contiguous(memory_format=pc.channels_last)


def test_positional_dtype_of_softmax() -> None:
    x = pc.zeros(2, 2, dtype=pc.int64)
    assert pc.softmax(x, 1, pc.float64).dtype is pc.float64
    assert x.log_softmax(0, pc.float64).dtype is pc.float64


def test_sums_in_bool() -> None:
    assert pc.sum(pc.tensor([[0.0, 0.5], [0.0, 0.0]]), 1, dtype=pc.bool).tolist() == [True, False]
    assert pc.nansum(pc.tensor([float("nan")]), dtype=pc.bool).item() is False


def test_0d_tensors_stand_for_numbers() -> None:
    for dtype in ("float16", "bfloat16", "uint16", "uint32", "uint64", "complex64", "complex128"):
        result = pc.full((2,), pc.tensor(3).to(dtype))
        assert result.tolist() == [3, 3]
    assert pc.zeros(1).fill_(pc.tensor(1.5, dtype=pc.bfloat16)).item() == 1.5
    assert pc.full((1,), pc.tensor(1 - 2j)).item() == 1 - 2j


def test_names_of_composed_functions_come_first() -> None:
    x = pc.ones(2, 3)
    with pytest.raises(ValueError, match=r"^index_reduce: `reduce` must be"):
        pc.index_reduce(x, 0, pc.tensor([0]), x[:1], "max")
    with pytest.raises(pc.DTypeError, match=r"^inner: mm: "):
        pc.inner(x, x.double())
    with pytest.raises(pc.DTypeError, match=r"^nextafter: `self` must be a floating-point dtype"):
        pc.nextafter(pc.arange(2), x[0, :2])


def test_generators_refuse_wrong_states() -> None:
    generator = pc.Generator().manual_seed(3)
    pc.rand(5, generator=generator)
    state = generator.get_state()
    first = pc.rand(3, generator=generator)
    assert pc.equal(pc.rand(3, generator=pc.Generator().set_state(state)), first)
    for bad in (None, 3, (1,), (1, 2, 3), ("a", 1), pc.zeros(3)):
        with pytest.raises(TypeError, match="set_state: `state` must be what get_state"):
            generator.set_state(bad)  # type: ignore[arg-type]
    for device in ("rocm", "meta"):
        with pytest.raises(RuntimeError, match="Generator: `device` must be cpu"):
            pc.Generator(device)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbours(dtype: str) -> None:
    limits = np.finfo(dtype)
    tiny, least = limits.smallest_normal, limits.smallest_subnormal
    some = [0, 1, 2, 0.1, 1e-30, tiny, least, tiny - least, limits.max, np.inf]
    x = np.array([*some, *(-y for y in some), np.nan], dtype)
    a, b = (np.ascontiguousarray(y) for y in np.broadcast_arrays(x[:, None], x))
    with np.errstate(all="ignore"):
        want = np.nextafter(a, b)
    got = pc.nextafter(pc.from_numpy(a), pc.from_numpy(b)).numpy()
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


def test_neighbours_of_halves() -> None:
    one = pc.ones(1, dtype=pc.float16)
    assert pc.nextafter(one, one * 2).item() == 1 + 2**-10
    assert pc.nextafter(one, -one).item() == 1 - 2**-11
    assert pc.nextafter(one * 0, one).item() == 2**-24
    assert pc.nextafter(one * 65504, one * float("inf")).item() == float("inf")
    assert pc.nextafter(one * float("inf"), one).item() == 65504
    brain = one.bfloat16()
    assert pc.nextafter(brain, -brain).item() == 1 - 2**-8
    assert pc.nextafter(brain * 0, brain).item() == 2**-133
    assert pc.nextafter(one, one.float() * 2).dtype is pc.float32
