"""Tests of the list of primitives: the operators that need a kernel on a new device."""

from __future__ import annotations

import pytest

from plait_ops import lower, specs
from plait_ops.emit import primitives
from plait_ops.emit.derivatives import is_constant
from plait_ops.emit.functions import functions_of

OPERATORS = list(specs.all())
MOST = 174


@pytest.fixture(scope="module")
def ranked() -> primitives.Order:
    return primitives.order(OPERATORS)


def test_a_new_operator_has_a_decomposition() -> None:
    """If it cannot be made of others, the number grows, and the commit says why."""
    names = [each.name for each in primitives.primitives(OPERATORS)]
    assert len(names) <= MOST, f"{len(names)} operators need a kernel on each device"


def test_each_primitive_stands_in_the_list_once(ranked: primitives.Order) -> None:
    assert sorted(ranked.names) == sorted(each.name for each in primitives.primitives(OPERATORS))
    assert ranked.names[:4] == list(primitives.RUNTIME)


def test_each_operator_runs_from_the_last_of_its_kernels_on(ranked: primitives.Order) -> None:
    place = {name: i for i, name in enumerate(ranked.names)}
    for name, unlocked in ranked.unlocked.items():
        for each in unlocked:
            assert max(ranked.needs[each], key=place.__getitem__) == name
    at_end = [each for unlocked in ranked.unlocked.values() for each in unlocked]
    assert sorted(at_end + ranked.at_start) == sorted(each.name for each in OPERATORS)
    assert ranked.running(len(ranked.names)) == len(OPERATORS)
    assert ranked.percent(len(ranked.names)) == 100


def test_the_next_kernels_are_those_of_the_largest_gain(ranked: primitives.Order) -> None:
    """After those of the runtime: no operator's kernels let more operators run for each kernel."""
    have = set(primitives.RUNTIME)
    rates = {}
    for name, needs in ranked.needs.items():
        if more := needs - have:
            running = sum(
                bool(each - have) and each <= have | more for each in ranked.needs.values()
            )
            rates[name] = running / len(more)
    chosen = ranked.names[4]
    least = next(n for n in range(5, 30) if ranked.unlocked[ranked.names[n - 1]])
    gain = ranked.running(least) - ranked.running(4)
    assert gain / (least - 4) == max(rates.values()), chosen


def test_needs_are_read_from_the_definitions() -> None:
    needs = primitives.kernels_of(OPERATORS)
    assert needs["exp"] == {"exp"} and needs["transpose"] == set()
    # `/` is the quotient alone, not the roundings that `div` has
    assert needs["softmax"] == {"amax", "cast", "exp", "sub", "sum", "true_divide"}
    assert needs["softmin"] == {*needs["softmax"], "neg"}
    # in a part, and in the other branch of a condition
    assert {"atan2", "where"} <= needs["angle"]
    assert "floor_divide" in needs["div"]


def test_the_page(ranked: primitives.Order) -> None:
    page = primitives.emit(OPERATORS)["primitives.md"]
    assert f"There are {len(OPERATORS)} operators, and {len(ranked.names)} of them" in page
    assert f"{ranked.percent(20)} % with 20" in page and "100 % with" in page
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    numbers = [int(row[1]) for row in rows if row[1].strip().isdigit()]
    assert numbers == list(range(1, len(ranked.names) + 1))
    topics = {
        row[1].strip(): int(row[2])
        for row in rows
        if row[2].strip().isdigit() and not row[1].strip().isdigit()
    }
    assert sum(topics.values()) == len(ranked.names) and topics["joining"] >= 1
    assert "[`linalg.svd`](linalg/svd.md)" in page


def test_layers_do_not_take_an_operator_apart_for_its_decomposition() -> None:
    """An engine takes one apart that has no derivative of its own. So those that had none before
    they had a decomposition refuse it: their results are truth values or integers.
    """
    for name in ("any.dim", "all", "isnan", "logical_not", "lcm", "argsort_rows"):
        operator = specs.find(name)
        assert is_constant(operator) and functions_of(operator)["vjp"] == "no_derivative"
    for name in ("softmax", "var", "elu", "linalg_inv"):
        assert functions_of(specs.find(name))["vjp"] not in (None, "no_derivative")


def test_the_operands_of_a_pointwise_decomposition_are_those_of_a_kernel() -> None:
    """The emitted function casts them; others get the arguments of the call."""
    from plait_ops.emit import functions

    text = "".join(functions.emit([specs.find("elu"), specs.find("tril")]).values())
    assert "promoted<decompose_elu_body>" in text
    assert "promoted<decompose_tril_body>" not in text
    assert lower.decompose(specs.find("elu")).parameters
