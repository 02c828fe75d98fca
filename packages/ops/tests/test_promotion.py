"""Type promotion: a table pinned from the documented rules, NumPy, and the C++ function through
meta tensors.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from plait_abi import DTypeError, operator
from plait_ops import promotion, specs
from plait_ops.promotion import ANY, COMPLEX, FLOATING, GROUPS, HALF, INTEGER, SIGNED, UNSIGNED

# The rules in one place: of a category the widest; of signed and unsigned the smallest signed that
# holds both;
# between categories the higher one; complex as wide as its parts need.
BITS = {name: int("".join(filter(str.isdigit, name)) or 8) for name in ANY} | {"bfloat16": 16}


def rule(a: str, b: str) -> str | None:
    if a == b:
        return a
    if "bool" in (a, b):
        return b if a == "bool" else a
    integers = [x for x in (a, b) if x in INTEGER]
    floats = [x for x in (a, b) if x in FLOATING]
    if len(integers) == 2:
        if (a in SIGNED) == (b in SIGNED):
            return max(a, b, key=BITS.__getitem__)
        signed, unsigned = (a, b) if a in SIGNED else (b, a)
        if BITS[signed] > BITS[unsigned]:
            return signed
        return {8: "int16", 16: "int32", 32: "int64"}.get(BITS[unsigned])
    if len(floats) == 2:
        return "float32" if BITS[a] == BITS[b] else max(a, b, key=BITS.__getitem__)
    if integers and floats:
        return floats[0]
    wide = any(BITS[x] == (128 if x in COMPLEX else 64) for x in (a, b) if x not in INTEGER)
    return "complex128" if wide else "complex64"


PAIRS = list(itertools.product(ANY, ANY))


def test_pairs_follow_the_rules() -> None:
    for a, b in PAIRS:
        if rule(a, b) is None:
            with pytest.raises(promotion.PromotionError, match="uint64"):
                promotion.promote_types(a, b)
        else:
            assert promotion.promote_types(a, b) == rule(a, b), (a, b)
            assert promotion.promote_types(b, a) == rule(a, b), (b, a)


def test_pairs_within_a_category_are_numpy_s() -> None:
    for a, b in PAIRS:
        same = promotion.category(a) == promotion.category(b)
        if same and rule(a, b) and "bfloat16" not in (a, b):
            assert np.promote_types(a, b).name == promotion.promote_types(a, b), (a, b)


@pytest.mark.parametrize(
    ("dimensioned", "zero_dim", "numbers", "expected"),
    [
        (["float32"], ["float64"], [], "float32"),
        (["int8"], ["int64"], [], "int8"),
        (["int64"], ["float64"], [], "float64"),
        (["int64"], [], ["float32"], "float32"),
        (["float64"], [], ["complex64"], "complex128"),
        (["float32"], [], ["complex64"], "complex64"),
        (["uint8"], [], ["int64"], "uint8"),
        (["bool"], [], ["int64"], "int64"),
        (["bool"], ["uint8"], ["float32"], "float32"),
        ([], ["int32"], ["int64"], "int32"),
        ([], ["float64"], ["float32"], "float64"),
        (["int32", "uint8"], [], ["int64"], "int32"),
        ([], [], ["bool", "float32"], "float32"),
    ],
)
def test_levels(
    dimensioned: list[str], zero_dim: list[str], numbers: list[str], expected: str
) -> None:
    assert promotion.result_type(dimensioned, zero_dim, numbers) == expected


def meta(dtype: str, *shape: int) -> Any:
    return operator("empty")(shape, dtype=dtype, device="meta")


def added(*operands: Any) -> str:
    return operator("add")(*operands).dtype.name


COMPUTED = list(itertools.product(ANY, ANY))


@pytest.mark.parametrize("shapes", [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())])
def test_the_runtime_promotes_tensors_so(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    for a, b in COMPUTED:
        levels: tuple[list[str], list[str]] = ([], [])
        for dtype, shape in zip((a, b), shapes, strict=True):
            levels[not shape].append(dtype)
        try:
            want = promotion.result_type(*levels, [])
        except promotion.PromotionError:
            with pytest.raises(DTypeError, match="add: `self` and `other`: uint64 and"):
                added(meta(a, *shapes[0]), meta(b, *shapes[1]))
            continue
        assert added(meta(a, *shapes[0]), meta(b, *shapes[1])) == want, (a, b)


@pytest.mark.parametrize("number", [True, 2, 2.5, 2j])
@pytest.mark.parametrize("shape", [(2,), ()])
def test_the_runtime_promotes_numbers_weakly(number: Any, shape: tuple[int, ...]) -> None:
    for dtype in ANY:
        levels = ([dtype], [], [promotion.number_dtype(number)])
        want = promotion.result_type(*(levels if shape else (levels[1], levels[0], levels[2])))
        assert added(meta(dtype, *shape), number) == want
        assert added(number, meta(dtype, *shape)) == want


@pytest.mark.parametrize(
    ("name", "dtypes", "text"),
    [
        ("lt", COMPLEX, "a real number: bool, an integer or floating-point dtype"),
        ("floor", ("bool", *COMPLEX), "an integer or floating-point dtype"),
        ("neg", ("bool",), "an integer, floating-point or complex dtype"),
        ("hypot", ("int64", *COMPLEX), "a floating-point dtype"),
        ("lerp", ("int64", "bool"), "a floating-point or complex dtype"),
        ("bitwise_not", FLOATING + COMPLEX, "an integer dtype or bool"),
    ],
)
def test_groups_are_refused_by_name(name: str, dtypes: tuple[str, ...], text: str) -> None:
    n = sum(a.is_tensor for a in specs.find(name).schema.arguments)
    for dtype in dtypes:
        with pytest.raises(DTypeError, match=f"{name}: .*must be {text}; got {dtype}"):
            operator(name)(*[meta(dtype, 2)] * n)


def test_groups_of_dtypes() -> None:
    for name in GROUPS:
        group = set(promotion.group(name))
        assert group <= set(ANY) and (
            group & set(COMPLEX) == set(COMPLEX) or not group & set(COMPLEX)
        )
    assert set(HALF) < set(promotion.group("floating")) < set(promotion.group("inexact"))
    assert set(promotion.group("numeric")) | set(COMPLEX) == set(promotion.group("arithmetic"))


def test_complex_numbers_as_parameters_need_complex_tensors() -> None:
    x, z = meta("float32", 2), meta("complex64", 2)
    with pytest.raises(DTypeError, match="add: `alpha` must be a real number for float32"):
        operator("add")(x, x, alpha=1j)
    assert operator("add")(z, x, alpha=1j).dtype.name == "complex64"


def test_real_results_of_complex_numbers() -> None:
    for name in ("abs", "angle", "var", "std", "norm"):
        assert operator(name)(meta("complex64", 2)).dtype.name == "float32"
        assert operator(name)(meta("complex128", 2)).dtype.name == "float64"


def test_integers_become_float_where_the_result_is() -> None:
    for dtype in ANY:
        want = dtype if dtype in FLOATING + COMPLEX else "float32"
        assert operator("exp")(meta(dtype, 2)).dtype.name == want
        assert operator("div")(meta(dtype, 2), meta(dtype, 2)).dtype.name == want


def test_unsigned_names_are_complete() -> None:
    assert {*UNSIGNED, *SIGNED, *FLOATING, *COMPLEX, "bool"} == set(ANY)
