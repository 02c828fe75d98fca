"""float8: conversions bit for bit, operators that move elements, and refusals of all others."""

from __future__ import annotations

import copy
import functools
import io
import pickle
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample, copy_layout
from plait_ops.spec import Operator

# bits of the fraction, bias, the largest bits without a sign, those of what is larger, and of NaN
SIGNED = {
    "float8_e4m3fn": (3, 7, 0x7E, 0x7E, 0x7F),
    "float8_e4m3fnuz": (3, 8, 0x7F, 0x80, 0x80),
    "float8_e5m2": (2, 15, 0x7B, 0x7C, 0x7F),
    "float8_e5m2fnuz": (2, 16, 0x7F, 0x80, 0x80),
}
KINDS = (*SIGNED, "float8_e8m0fnu")
OTHERS = ("bool", "uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "bfloat16")
OTHERS += ("float32", "float64", "complex64", "complex128")


def value_of(name: str, bits: int) -> float:
    """The number that bits mean, by the definition of the format."""
    if name == "float8_e8m0fnu":
        return float("nan") if bits == 255 else 2.0 ** (bits - 127)
    fraction, bias, largest, larger, nan = SIGNED[name]
    rest, sign = bits & 0x7F, -1.0 if bits & 0x80 else 1.0
    if nan == 0x80:
        if bits == 0x80:
            return float("nan")
    elif rest > largest:
        return sign * float("inf") if larger == rest else float("nan")
    exponent, part = rest >> fraction, rest & ((1 << fraction) - 1)
    scale = 2.0 ** (max(exponent, 1) - bias - fraction)
    return sign * scale * (part + ((1 << fraction) if exponent else 0))


def all_values(name: str) -> list[float]:
    return [value_of(name, bits) for bits in range(256)]


def of_bits(name: str, bits: Any) -> pc.Tensor:
    return pc.tensor(bits, dtype=pc.uint8).view(pc.dtype(name))


def bits_of(tensor: pc.Tensor) -> list[int]:
    return tensor.view(pc.uint8).tolist()


def nearest(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits of numbers: the nearest value, of two as near the one with even bits."""
    if name == "float8_e8m0fnu":
        powers = np.arange(-127, 128)
        values, bits = 2.0**powers, powers + 127
        x = np.abs(x)
        # a tie is rounded up, as PyTorch does, and what is more than 2**-127 too
    else:
        _, _, largest, larger, nan = SIGNED[name]
        bits = np.arange(largest + 1)
        values = np.array([value_of(name, int(b)) for b in bits])
    result = np.empty(x.shape, np.uint8)
    for i, number in enumerate(x.astype(np.float64)):
        sign = 0x80 if np.signbit(number) and name != "float8_e8m0fnu" else 0
        size = abs(number)
        if name == "float8_e8m0fnu":
            if not np.isfinite(number):
                result[i] = 0xFF
                continue
            high = np.searchsorted(values, size)
            low = max(high - 1, 0)
            high = min(high, 254)
            middle = (values[low] + values[high]) / 2
            up = size > (middle if low else values[0]) or (size == middle and low > 0)
            result[i] = bits[high if up and size > values[low] else low]
            result[i] = 0xFF if size > 1.5 * 2.0**127 or size == 1.5 * 2.0**127 else result[i]
            continue
        if np.isnan(number):
            result[i] = nan if nan == 0x80 else nan | sign
            continue
        step = values[-1] - values[-2]
        high = min(np.searchsorted(values, size), len(values) - 1)
        low = max(high - 1, 0)
        if size > values[-1]:
            # beyond half a step above the largest there is no number of the format
            over = size > values[-1] + step / 2 or (
                size == values[-1] + step / 2 and bits[-1] % 2 == 1
            )
            bit = larger if over else bits[-1]
        else:
            above, below = values[high] - size, size - values[low]
            near_high = above < below or (above == below and bits[high] % 2 == 0)
            bit = bits[high] if near_high else bits[low]
        if nan == 0x80 and bit in (0, 0x80):
            sign = 0
        result[i] = bit | sign
    return result


@pytest.mark.parametrize("name", KINDS)
def test_every_value_of_a_kind(name: str) -> None:
    right = np.array(all_values(name))
    x = of_bits(name, list(range(256)))
    assert x.dtype is pc.dtype(name) and x.element_size() == 1 and x.is_floating_point()
    np.testing.assert_array_equal(np.array(x.tolist()), right)
    np.testing.assert_array_equal(x.float().numpy(), right.astype(np.float32))
    np.testing.assert_array_equal(x.double().numpy(), right)
    with np.errstate(over="ignore"):
        halves = right.astype(np.float16)
    np.testing.assert_array_equal(x.half().numpy(), halves)
    back = x.float().to(x.dtype)
    numbers = ~np.isnan(right)
    assert np.array_equal(np.array(bits_of(back))[numbers], np.arange(256)[numbers])
    assert bool(pc.isnan(back)[pc.tensor(np.flatnonzero(~numbers).tolist())].all())


@pytest.mark.parametrize("name", KINDS)
def test_rounding(name: str) -> None:
    """Between two numbers, at the middle, beside it, at the ends, and numbers drawn from all."""
    finite = np.array(sorted({abs(v) for v in all_values(name) if np.isfinite(v)}), np.float32)
    middles = (finite[1:].astype(np.float64) + finite[:-1]).astype(np.float32) / 2
    edges = np.concatenate([finite, middles, np.float32([0, finite[-1] * 1.0625, 3e38, np.inf])])
    near = np.concatenate([edges, np.nextafter(edges, np.float32(0)),
                           np.nextafter(edges, np.float32(np.inf))])  # fmt: skip
    drawn = np.random.default_rng(0).integers(0, 2**32, 2000, np.uint32).view(np.float32)
    x = np.concatenate([near, -near, drawn, np.float32([np.nan])])
    x = x[~np.isnan(x) | (np.arange(len(x)) == len(x) - 1)]
    with np.errstate(all="ignore"):
        right = nearest(name, x)
    assert bits_of(pc.from_numpy(x).to(pc.dtype(name))) == right.tolist()
    # runs of other lengths take the scalar path of a loop
    for n in (1, 3, 17):
        assert bits_of(pc.from_numpy(x[:n].copy()).to(pc.dtype(name))) == right[:n].tolist()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("other", OTHERS)
def test_conversions_go_through_float32(name: str, other: str) -> None:
    x = of_bits(name, list(range(256)))
    x = x[(pc.isfinite(x) & (x.float().abs() < 100)).tolist()]
    there = x.to(pc.dtype(other))
    assert there.dtype.name == other
    assert repr(there.tolist()) == repr(x.float().to(pc.dtype(other)).tolist())
    assert bits_of(there.to(x.dtype)) == bits_of(there.float().to(x.dtype) if other[0] != "c"
                                                 else there.real.float().to(x.dtype))  # fmt: skip


def test_numbers_and_lists() -> None:
    kind = pc.float8_e4m3fn
    assert pc.tensor([1.0, 0.1], dtype=kind).tolist() == [1.0, 0.1015625]
    assert pc.full((2,), 0.1, dtype=kind).tolist() == [0.1015625] * 2
    assert pc.zeros(2, dtype=kind).fill_(3).tolist() == [3.0] * 2
    assert pc.tensor(2.5, dtype=kind).item() == 2.5 and float(pc.tensor(2.5, dtype=kind)) == 2.5
    x = pc.zeros(4, dtype=kind)
    x[1], x[2:] = 1.5, pc.ones(2)
    assert x.tolist() == [0.0, 1.5, 1.0, 1.0]
    assert repr(x) == "tensor([0.0000, 1.5000, 1.0000, 1.0000], dtype=float8_e4m3fn)"


def test_facts_of_the_dtypes() -> None:
    facts = {
        "float8_e4m3fn": (448.0, -448.0, 0.125, 2.0**-6),
        "float8_e4m3fnuz": (240.0, -240.0, 0.125, 2.0**-7),
        "float8_e5m2": (57344.0, -57344.0, 0.25, 2.0**-14),
        "float8_e5m2fnuz": (57344.0, -57344.0, 0.125, 2.0**-15),
        "float8_e8m0fnu": (2.0**127, 2.0**-127, 1.0, 2.0**-127),
    }
    for name, right in facts.items():
        kind = pc.dtype(name)
        info = pc.finfo(kind)
        assert (info.max, info.min, info.eps, info.smallest_normal) == right
        assert (info.bits, info.resolution, kind.itemsize) == (8, 1.0, 1)
        assert kind.is_floating_point and kind.is_signed == (name != "float8_e8m0fnu")
        assert pickle.loads(pickle.dumps(kind)) is kind
        code, bits, lanes = kind.__dlpack_data_type__()
        assert (code in range(10, 15), bits, lanes) == (True, 8, 1)
    with pytest.raises(TypeError, match="floating-point dtype is required"):
        pc.set_default_dtype(pc.float8_e5m2)


@pytest.mark.parametrize("name", KINDS)
def test_what_stores_keeps_the_bits(name: str) -> None:
    x = of_bits(name, list(range(256))).reshape(16, 16)
    for back in (
        pickle.loads(pickle.dumps(x)),
        copy.deepcopy(x),
        pc.from_dlpack(x),
        _saved(x),
        x.t().contiguous().t(),
        x.clone(),
        pc.cat([x[:5], x[5:]]),
        pc.stack([x, x])[1],
        x[pc.arange(16)],
        x.index_select(1, pc.arange(16)),
        x.gather(1, pc.arange(16).expand(16, 16)),
        pc.where(pc.ones(16, 16) > 0, x, pc.zeros_like(x)),
        pc.zeros_like(x).copy_(x),
        pc.zeros_like(x).masked_scatter(pc.ones(16, 16) > 0, x),
        x.flip(0).flip(0),
        x.view(pc.int32).view(x.dtype),
    ):
        assert back.dtype is x.dtype and bits_of(back.contiguous()) == bits_of(x)
    buffer = pc.frombuffer(bytes(range(256)), dtype=x.dtype)
    assert bits_of(buffer) == list(range(256))


def _saved(x: pc.Tensor) -> pc.Tensor:
    file = io.BytesIO()
    pc.save({"x": x}, file)
    result: pc.Tensor = pc.load(io.BytesIO(file.getvalue()))["x"]
    return result


def test_numpy_has_no_float8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    x = pc.ones(2, dtype=pc.float8_e5m2)
    with pytest.raises(TypeError, match="NumPy has no float8_e5m2"):
        x.numpy()
    with pytest.raises(BufferError, match="float8_e5m2 has no buffer format"):
        memoryview(x)


def test_promotion() -> None:
    x = pc.ones(2, dtype=pc.float8_e4m3fn)
    for other in (pc.ones(2), pc.ones(2, dtype=pc.int64), x.to(pc.float8_e5m2), pc.ones(2) > 0):
        with pytest.raises(pc.DTypeError, match=r"have no common dtype.*x\.float\(\)"):
            pc.cat([x, other])
        with pytest.raises(pc.DTypeError, match=r"add: .*have no common dtype"):
            x + other
        with pytest.raises(TypeError, match="no common dtype"):
            pc.promote_types(x.dtype, other.dtype)
    assert pc.promote_types(x.dtype, x.dtype) is x.dtype
    with pytest.raises(NotImplementedError, match=r"add: .*float8 is stored.*x\.float\(\)"):
        x + 1


def test_gradients_pass_through_conversions() -> None:
    pytest.importorskip("plait_autograd")
    w = pc.tensor([1.0, 2.0], requires_grad=True)
    (w.to(pc.float8_e4m3fn).float() * pc.tensor([3.0, 0.1])).sum().backward()
    assert w.grad.tolist() == [3.0, 0.1015625]  # rounded on the way, as the values are


# ---- every operator


def float8_of(dtype: Any, x: np.ndarray[Any, Any], widened: list[Any]) -> Any:
    result = pc.from_numpy(copy_layout(x))
    if x.dtype == np.float32:
        result = result.to(dtype)
    widened.append(result.float() if x.dtype == np.float32 else pc.from_numpy(copy_layout(x)))
    return result


def calls(spec: Operator) -> list[tuple[Sample, Sample]]:
    """Samples with float8 in the place of float32, and with float32 of the same values."""
    results = []
    for sample in draw(spec):
        widened: list[Any] = []
        call = sample.mapped(functools.partial(float8_of, pc.float8_e4m3fn, widened=widened))
        if any(x.dtype is pc.float32 for x in widened):
            reference = sample.mapped(lambda x, widened=widened: widened.pop(0))
            results.append((call, reference))
        if len(results) == 3:
            break
    return results


def flat(result: Any) -> list[Any]:
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    return [value for value in values if isinstance(value, pc.Tensor)]


@pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)
def test_an_operator_moves_float8_or_names_it(spec: Operator) -> None:
    """It gives what it gives for float32 of the same values, or an error with its name."""
    if spec.unpredictable:
        return
    function = operator(spec.name)
    for call, reference in calls(spec):
        try:
            results = flat(function(*call.args, **call.kwargs))
        except (pc.DTypeError, NotImplementedError, TypeError) as error:
            assert "float8" in str(error), error
            assert spec.internal or str(error).startswith(spec.name.split(".")[0]), error
            continue
        right = flat(function(*reference.args, **reference.kwargs))
        assert len(results) == len(right)
        for ours, wide in zip(results, right, strict=True):
            assert ours.shape == wide.shape
            expected = wide.to(ours.dtype)
            same = ours.float() if ours.dtype is pc.float8_e4m3fn else ours
            expected = expected.float() if ours.dtype is pc.float8_e4m3fn else expected
            np.testing.assert_array_equal(same.detach().numpy(), expected.detach().numpy())
