"""Numbers that multiply tensors of integers: `alpha` and `beta` of every operator that has one."""

import math

import numpy as np
import pytest

import plait_core as pc
from plait_ops import specs

# the shapes of the tensors, and the result in whole numbers
OPERATORS = {
    "add": ([(2,), (2,)], lambda x, y, alpha: x + alpha * y),
    "sub": ([(2,), (2,)], lambda x, y, alpha: x - alpha * y),
    "subtract": ([(2,), (2,)], lambda x, y, alpha: x - alpha * y),
    "rsub": ([(2,), (2,)], lambda x, y, alpha: y - alpha * x),
    "index_add": ([(2,), (2,)], lambda x, y, alpha: x + alpha * y),
    "addmm": ([(2, 2)] * 3, lambda x, y, z, alpha, beta: beta * x + alpha * (y @ z)),
    "baddbmm": ([(1, 2, 2)] * 3, lambda x, y, z, alpha, beta: beta * x + alpha * (y @ z)),
    "addmv": ([(2,), (2, 2), (2,)], lambda x, y, z, alpha, beta: beta * x + alpha * (y @ z)),
    "addr": ([(2, 2), (2,), (2,)], lambda x, y, z, alpha, beta: beta * x + alpha * np.outer(y, z)),
    "addbmm": (
        [(2, 2), (1, 2, 2), (1, 2, 2)],
        lambda x, y, z, alpha, beta: beta * x + alpha * (y[0] @ z[0]),
    ),
}
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FACTORS = [1, 2, 0, -1, 3, True]


def _factors(name):
    return ["alpha", "beta"][: 2 if len(OPERATORS[name][0]) == 3 else 1]


def _arrays(name):
    return [
        np.arange(1, 1 + math.prod(shape)).reshape(shape).astype(object)
        for shape in OPERATORS[name][0]
    ]


def _call(name, dtype, **factors):
    tensors = [pc.tensor(x.tolist(), dtype=getattr(pc, dtype)) for x in _arrays(name)]
    if name == "index_add":
        return pc.index_add(tensors[0], 0, pc.tensor([0, 1]), tensors[1], **factors)
    return getattr(pc, name)(*tensors, **factors)


def test_all_operators_are_here():
    named = {
        spec.name
        for spec in specs.all()
        for each in spec.schema.arguments
        if each.name in ("alpha", "beta") and each.type == "Scalar"
    }
    assert named == set(OPERATORS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_factors_of_integers(name, dtype):
    info, mask = np.iinfo(dtype), 2 ** np.iinfo(dtype).bits - 1
    large = [info.max, info.max - 1, info.max // 2 + 2]
    if info.bits < 64:
        large += [-info.max]
    for argument in _factors(name):
        for value in FACTORS + [each for each in large if each < 2**63]:
            if value is True and name in ("add", "sub", "subtract", "rsub"):
                continue  # a TypeError
            factors = {"alpha": 1, "beta": 1, argument: value}
            selection = {key: factors[key] for key in _factors(name)}
            expected = OPERATORS[name][1](*_arrays(name), **selection)
            expected = [int(each) & mask for each in expected.reshape(-1)]
            result = _call(name, dtype, **{argument: value})
            unsigned = np.array(result.tolist(), object).reshape(-1) & mask
            assert result.dtype is getattr(pc, dtype)
            assert unsigned.tolist() == expected, value


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_factors_that_do_not_fit_are_errors(name, dtype):
    info = np.iinfo(dtype)
    bad = [math.inf, -math.inf, math.nan, 1e30, -1e30, 1j, 2 + 0j, info.max + 1, 2**70]
    if info.min:
        bad.append(info.min - 1)
    for argument in _factors(name):
        for value in bad:
            with pytest.raises((ValueError, TypeError, OverflowError)):
                _call(name, dtype, **{argument: value})


@pytest.mark.parametrize("name", OPERATORS)
def test_fractions_are_refused_or_cut_off(name):
    for argument in _factors(name):
        if name in ("add", "sub", "subtract", "rsub", "addr"):
            with pytest.raises(TypeError):
                _call(name, "int64", **{argument: 2.5})
            continue
        for value, whole in ((2.5, 2), (-1.5, -1), (0.5, 0), (3.0, 3)):
            result = _call(name, "int64", **{argument: value})
            assert pc.equal(result, _call(name, "int64", **{argument: whole}))


def test_factors_of_bools():
    """Any number but 0 is True."""
    for alpha in (-1, 0, 1, 2):
        for beta in (-1, 0, 1, 2):
            x = pc.tensor([[True, False], [True, False]])
            y, z = pc.tensor([True, True]), pc.tensor([True, False])
            result = pc.addr(x, y, z, alpha=alpha, beta=beta)
            expected = [[bool(alpha) or bool(beta), False]] * 2
            assert result.dtype is pc.bool and result.tolist() == expected
