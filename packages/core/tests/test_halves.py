"""float16 and bfloat16: every operator on its samples in halves; rounding, special values."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample, copy_layout
from plait_ops.spec import Operator

EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
# A rounding before a step moves an element to its other side; of these the reference depends on the
# dtype.
STEPS = {
    "isclose",
    "nextafter",
    "round.decimals",
    "special_round",
    "quantile",
    "nanquantile",
    "nan_to_num",
}
STEPS |= {
    "cosine_similarity",
    "linalg_eigvals",
    "roi_pool",
    "ps_roi_pool",
}  # an eps below the smallest half; an order of roots; corners of cells
REFUSING = {"view_as_complex", "complex", "polar"}
OTHER_DTYPE = {
    "cast",
    "ldexp",
    "bincount",
    "linspace.tensors",
    "logspace.tensors",
    "attention_forward",
    "box_iou_rotated",
}  # a result follows another rule


def note(kinds: list[str], x: np.ndarray[Any, Any]) -> None:
    kinds.append(x.dtype.name)


def next_of(rounded: list[Any], x: np.ndarray[Any, Any]) -> Any:
    return rounded.pop(0)


def samples(spec: Operator, dtype: str) -> Iterator[tuple[Sample, Sample]]:
    """Yield the samples whose floating arrays are all float32: as halves, and as float32 of their
    values.
    """
    for sample in draw(spec):
        kinds: list[str] = []
        sample.mapped(functools.partial(note, kinds))
        floats = {kind for kind in kinds if kind.startswith(("float", "complex"))}
        if floats != {"float32"} or "dtype" in sample.kwargs:
            continue
        rounded: list[Any] = []

        def half(x: np.ndarray[Any, Any], rounded: list[Any] = rounded) -> Any:
            result = pc.from_numpy(copy_layout(x))
            if x.dtype != np.float32:
                rounded.append(copy_layout(x))
                return result
            result = result.to(getattr(pc, dtype))
            rounded.append(result.to(pc.float32).numpy().copy())
            return result

        call = sample.mapped(half)
        reference = sample.mapped(functools.partial(next_of, rounded))
        yield call, reference


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def plain(tensor: Any) -> np.ndarray[Any, Any]:
    wide = tensor.to(pc.float32) if tensor.dtype in (pc.float16, pc.bfloat16) else tensor
    return np.asarray(wide.numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)
def test_every_operator(spec: Operator, dtype: str) -> None:
    if spec.unpredictable or spec.name in STEPS:
        return
    for call, reference in samples(spec, dtype):
        if spec.name in REFUSING:
            with pytest.raises(pc.DTypeError, match=dtype):
                operator(spec.name)(*call.args, **call.kwargs)
            return
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = spec(*reference.args, **reference.kwargs)
            expected = [np.asarray(each) for each in as_list(result)]
        result = as_list(operator(spec.name)(*call.args, **call.kwargs))
        for i, (got, want) in enumerate(zip(result, expected, strict=True)):
            assert tuple(got.shape) == want.shape
            if want.dtype == np.float32 and spec.name not in OTHER_DTYPE:
                saved = saves_statistics(spec) and i > 0
                assert got.dtype is (pc.float32 if saved else getattr(pc, dtype)), call
            assert_close(got, want, dtype, call)


def assert_close(got: Any, want: np.ndarray[Any, Any], dtype: str, call: Sample) -> None:
    bound = 0.0
    if want.dtype.kind in "fc":
        if dtype == "float16" and want.dtype.kind == "f":
            with np.errstate(over="ignore"):
                want = want.astype("float16").astype("float32")
        sizes = np.abs(want[np.isfinite(want)]).astype("float64")
        bound = EPS[dtype] * 4 * max(1.0, float(sizes.max(initial=0))) * sample_scale(call)
    np.testing.assert_allclose(plain(got), want, rtol=0, atol=bound, err_msg=str(call))


def saves_statistics(spec: Operator) -> bool:
    """Return whether results but the first are means and variances, which are not rounded."""
    return spec.name.startswith(("native_batch_norm", "native_layer_norm"))


def sample_scale(sample: Sample) -> float:
    return max(1.0, sample.tolerance)


def of(values: list[float], dtype: str = "float16") -> pc.Tensor:
    return pc.tensor(values, dtype=dtype)


def test_sums_accumulate_in_float32() -> None:
    x = pc.ones(5000, dtype=pc.float16)
    assert x.sum().item() == 5000 and x.sum().dtype is pc.float16
    assert (x * 0.001).mean().item() == pytest.approx(0.001, rel=1e-3)
    rows = pc.ones(3, 3000, dtype=pc.bfloat16)
    assert (rows @ rows.T).tolist() == [[3008.0] * 3] * 3  # 3000 to 8 bits


def test_results_round_once() -> None:
    x, y = of([2049.0]), of([1.0])
    assert x.item() == 2048
    assert pc.add(x, y, alpha=3).item() == 2052  # 2051 to the nearest even
    assert pc.addcmul(of([1.0]), of([2048.0]), of([1.0]), value=1.001).item() == 2052


def test_numbers_are_not_rounded_before_the_result() -> None:
    assert (of([1000.0]) * 0.1).item() == float(np.float16(100))
    assert (of([0.1]) == 0.1).item()  # but compared as elements


@pytest.mark.parametrize("n", [1, 7, 8, 9, 255, 256, 257, 70000])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rows_of_any_length(n: int, dtype: str) -> None:
    x = pc.arange(n).to(pc.float32) / 7
    half = x.to(getattr(pc, dtype))
    want = (half.to(pc.float32) + 1.5).to(getattr(pc, dtype))
    assert pc.equal(half + 1.5, want)
    assert pc.equal((half.flip(0) + 1.5).flip(0), want)
    assert pc.equal(half > 3, half.to(pc.float32) > 3)


def test_special_values() -> None:
    x = of([0.0, -0.0, math.inf, -math.inf, math.nan, 6e-8, 65504.0])
    got = (x + x).tolist()
    assert math.copysign(1, got[1]) == -1 and got[2:4] == [math.inf, -math.inf]
    assert math.isnan(got[4]) and got[5] == 2 * x[5].item() and got[6] == math.inf
    assert pc.isfinite(x).tolist() == [True, True, False, False, False, True, True]
    assert pc.sort(x[:4])[0].tolist() == [-math.inf, 0.0, 0.0, math.inf]


def test_mixed_halves_give_float32() -> None:
    assert (of([1.0]) + of([1.0], "bfloat16")).dtype is pc.float32
    assert (of([1.0]) + pc.tensor([1])).dtype is pc.float16
    assert (of([1.0]) + pc.tensor(1.0)).dtype is pc.float16
    assert (of([1.0]) + 1j).dtype is pc.complex64


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16])
def test_written_arguments(dtype: Any) -> None:
    x = pc.zeros(4, 3, dtype=dtype)
    x.index_add_(0, pc.tensor([1, 1]), pc.ones(2, 3, dtype=dtype))
    assert x.tolist() == [[0.0] * 3, [2.0] * 3, [0.0] * 3, [0.0] * 3]
    part = x[:, ::2]
    part.normal_()
    assert x[:, 1].tolist() == [0.0, 2.0, 0.0, 0.0] and part.abs().sum().item() > 0
    assert x.dtype is dtype


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16])
def test_uniform_numbers_stay_below_one(dtype: Any) -> None:
    pc.manual_seed(0)
    x = pc.rand(20000, dtype=dtype)
    assert x.dtype is dtype and x.min().item() >= 0 and x.max().item() < 1
    assert abs(x.float().mean().item() - 0.5) < 0.02
    assert pc.randn(1000, dtype=dtype).float().std().item() == pytest.approx(1, abs=0.1)


def test_softmax_of_large_halves() -> None:
    x = of([60000.0, 60000.0, -60000.0])
    assert pc.softmax(x, 0).tolist() == [0.5, 0.5, 0.0]
    assert pc.norm(of([300.0, 400.0])).item() == 500


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16], ids=["float16", "bfloat16"])
def test_every_half_is_converted_both_ways(dtype: pc.dtype) -> None:
    bits = np.arange(1 << 16, dtype="uint16")
    halves = pc.from_numpy(bits).view(dtype)
    exact = halves.to(pc.float32)
    if dtype is pc.bfloat16:
        want = (bits.astype("uint32") << 16).view("float32")
    else:
        want = bits.view("float16").astype("float32")
    np.testing.assert_array_equal(exact.numpy(), want)
    assert (np.signbit(exact.numpy()) == np.signbit(want)).all()
    nan = np.isnan(want)
    back = exact.to(dtype).view(pc.uint16).numpy()
    np.testing.assert_array_equal(back[~nan], bits[~nan])
    assert np.isnan(pc.from_numpy(back).view(dtype).to(pc.float32).numpy()[nan]).all()


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16], ids=["float16", "bfloat16"])
def test_signs_of_every_half(dtype: pc.dtype) -> None:
    bits = np.arange(1 << 16, dtype="uint16")
    halves = pc.from_numpy(bits).view(dtype)

    def same(result: pc.Tensor, want: Any) -> None:
        assert result.dtype is dtype
        np.testing.assert_array_equal(result.view(pc.uint16).numpy(), want)

    same(-halves, bits ^ 0x8000)
    same(halves.abs(), bits & 0x7FFF)
    same(pc.copysign(halves, halves.flip(0)), (bits & 0x7FFF) | (bits[::-1] & 0x8000))
    same(-halves[::3], bits[::3] ^ 0x8000)
    same(-halves.reshape(256, 256).t(), bits.reshape(256, 256).T ^ 0x8000)
    same(halves.clone().neg_(), bits ^ 0x8000)
    same(pc.copysign(halves.reshape(256, 256), halves[-1]), bits.reshape(256, 256) | 0x8000)
    same(-halves[:0], bits[:0])
    same(-halves[5], np.uint16(0x8005))
    assert pc.copysign(halves[:9], -1.0).tolist() == (-halves[:9].abs()).tolist()


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("exponent", [1, 2, 3, 0.5, -1, -0.5, -2])
def test_common_powers_of_every_half(exponent: float, dtype: pc.dtype) -> None:
    halves = pc.from_numpy(np.arange(1 << 16, dtype="uint16")).view(dtype)
    exact = operator("pow")(halves.float(), pc.tensor(float(exponent)))
    got, want = halves**exponent, exact.to(dtype)
    assert got.dtype is dtype
    np.testing.assert_array_equal(got.float().numpy(), want.float().numpy())
    strided = halves.reshape(256, 256).t() ** exponent
    np.testing.assert_array_equal(
        strided.float().numpy(), want.reshape(256, 256).t().float().numpy()
    )


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("columns", [8, 16, 100, 2048, 2050])
def test_sums_of_short_rows_and_of_columns(columns: int, dtype: pc.dtype) -> None:
    rows = 3 + 40_000 // columns
    halves = pc.randn(rows, columns).to(dtype)
    wide = halves.float()
    for dim in (0, 1):
        for view in (lambda x: x, lambda x: x[1:], lambda x: x[:, : columns - 1], lambda x: x[::2]):
            got, want = view(halves).sum(dim), view(wide).sum(dim).to(dtype)
            np.testing.assert_array_equal(got.float().numpy(), want.float().numpy())
            got, want = view(halves).amax(dim), view(wide).amax(dim).to(dtype)
            np.testing.assert_array_equal(got.float().numpy(), want.float().numpy())


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16], ids=["float16", "bfloat16"])
def test_rounding_is_to_nearest_even(dtype: pc.dtype) -> None:
    bits = np.arange(0, 0x7C00 if dtype is pc.float16 else 0x7F80, dtype="uint16")
    low = pc.from_numpy(bits).view(dtype).to(pc.float32).numpy().astype("float64")
    middle = (low[:-1] + low[1:]) / 2  # a float32
    even = bits[:-1] + (bits[:-1] & 1)
    for x, want in (
        (middle, even),
        (np.nextafter(middle.astype("float32"), np.float32(0)), bits[:-1]),
        (np.nextafter(middle.astype("float32"), np.float32(np.inf)), bits[1:]),
    ):
        for sign, top in ((1, 0), (-1, 0x8000)):
            got = pc.from_numpy((sign * x).astype("float32")).to(dtype).view(pc.uint16).numpy()
            np.testing.assert_array_equal(got, want | top)


each_half = pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16], ids=["float16", "bfloat16"])


def drawn(*shape: int) -> pc.Tensor:
    rng = np.random.default_rng(sum(shape))
    return pc.from_numpy(rng.standard_normal(shape).astype("float32") * 3)


def assert_rounded_once(name: str, dtype: pc.dtype, *args: Any) -> None:
    """The bits are those of float32 arithmetic on the same values, rounded once."""

    def to(x: Any, dtype: Any) -> Any:
        return x.to(dtype) if isinstance(x, pc.Tensor) and x.dtype is not pc.bool else x

    call = operator(name)
    got = as_list(call(*args))
    want = as_list(call(*(to(x, pc.float32) for x in args)))
    for a, b in zip(got[:1], want[:1], strict=True):  # others are saved
        assert a.dtype is dtype
        np.testing.assert_array_equal(plain(a), plain(b.to(dtype)), err_msg=name)


@each_half
@pytest.mark.parametrize("n", [1, 7, 8, 64, 65, 257, 3000])
def test_rows_are_rounded_once(n: int, dtype: pc.dtype) -> None:
    x, g, w, b = (drawn(*shape).to(dtype) for shape in ((11, n), (11, n), (n,), (n,)))
    gaps = drawn(11, 2 * n).to(dtype)[:, ::2]
    for each in (x, gaps, x.t().contiguous().t()):
        for dim in (0, 1, -1):
            for name in ("softmax", "log_softmax"):
                assert_rounded_once(name, dtype, each, dim)
                y = operator(name)(each, dim)
                assert_rounded_once(f"{name}_backward", dtype, g, y, dim)
        for weight, bias in ((None, None), (w, None), (w, b), (gaps[0], b)):
            assert_rounded_once("native_layer_norm", dtype, each, [n], weight, bias, 1e-5)


@each_half
def test_special_values_in_rows(dtype: pc.dtype) -> None:
    x = drawn(6, 100).to(dtype)
    for i, value in enumerate([np.inf, -np.inf, np.nan, -0.0, 6e-8]):
        x[i, 3] = value
    x[5] = -np.inf
    for name in ("softmax", "log_softmax"):
        assert_rounded_once(name, dtype, x, 1)
    assert_rounded_once("native_layer_norm", dtype, x, [100], None, None, 1e-5)


@each_half
@pytest.mark.parametrize("queries", [1, 3, 40, 200])
@pytest.mark.parametrize("keys", [1, 15, 40, 300])
def test_attention_is_rounded_once(queries: int, keys: int, dtype: pc.dtype) -> None:
    for width, values in ((16, 16), (5, 9), (64, 32)):
        q = drawn(2, queries, 3, width).to(dtype).transpose(1, 2)
        k = drawn(2, keys, 3, width).to(dtype).transpose(1, 2)
        v = drawn(2, 3, keys, values).to(dtype)
        strange = v.transpose(2, 3).contiguous().transpose(2, 3)
        mask = drawn(2, 3, queries, keys).to(dtype)
        for value, added, causal in (
            *((v, None, False), (strange, None, True), (v, mask, False), (v, mask > 0, False)),
            (v, mask.transpose(2, 3).contiguous().transpose(2, 3), False),
        ):
            args = q, k, value, added, causal, 0.3
            assert_rounded_once("attention_forward", dtype, *args)


@each_half
@pytest.mark.parametrize("n", [1, 7, 31, 32, 100, 1023, 1024, 1056, 70000])
def test_reductions_are_rounded_once(n: int, dtype: pc.dtype) -> None:
    x = drawn(3, n).to(dtype)
    strange = x.clone()
    strange[0, n // 2] = np.nan
    strange[1, n // 3] = np.inf
    strange[2, n // 2] = -np.inf
    for each in (x, strange, x.t(), x[:, ::2], x[1:]):
        for name in ("sum", "mean", "amax", "amin"):
            for dim in ([0], [1], [0, 1]):
                assert_rounded_once(name, dtype, each, dim)
