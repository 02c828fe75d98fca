"""Role ``communicator``: groups of one to four processes, the kinds of collectives, and errors.

A kind that the provider lacks (PLAIT_NOT_IMPLEMENTED) is skipped by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from plait_conformance import _members as m
from plait_conformance.plugin import communicator_under_test

KINDS = (
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "reduce_scatter",
    "all_to_all",
)
COUNTS = (0, 1, 7, 1000, 40_001)
DTYPES = ("float32", "float64", "int64", "uint8", "bool", "complex64")
REDUCED = {"all_reduce", "reduce", "reduce_scatter"}
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda rows: rows.any(0) if rows.dtype == bool else rows.sum(0, dtype=rows.dtype),
    "mean": lambda rows: rows.mean(0, dtype=rows.dtype),
    "product": lambda rows: rows.all(0) if rows.dtype == bool else rows.prod(0, dtype=rows.dtype),
    "min": lambda rows: rows.min(0),
    "max": lambda rows: rows.max(0),
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}


@pytest.fixture(scope="session")
def provider(pytestconfig: pytest.Config) -> m.Provider:
    """The tested provider."""
    return communicator_under_test(pytestconfig)


@pytest.fixture(scope="session")
def members(provider: m.Provider, pytestconfig: pytest.Config) -> Iterator[m.Members]:
    """The processes."""
    result = m.Members(provider, pytestconfig.getoption("--members"))
    yield result
    result.close()


def results(members: m.Members, size: int, task: Any, *arguments: Any, **options: Any) -> list[Any]:
    """Run a task in all members; skip the test if the provider lacks a kind."""
    value = members.run(size, task, *arguments, **options)
    for rank, result in enumerate(value):
        if isinstance(result, m.Failure):
            if result.kind == "NotImplementedError":
                pytest.skip(f"{members.provider.name} lacks it: {result.text}")
            pytest.fail(f"{members.provider.name}, rank {rank}: {result.kind}: {result.text}")
    return value


def expected(kind: str, rank: int, size: int, count: int, dtype: str, reduction: str) -> list[Any]:
    """The outputs of `run_collective`."""
    root = size - 1
    of = [[m.input_of(r, count, dtype, turn) for turn in range(size)] for r in range(size)]

    def reduced(turn: int) -> Any:
        return REDUCTIONS[reduction](np.stack([of[r][turn] for r in range(size)]))

    if kind in ("reduce", "gather") and rank != root:
        return []
    if kind in ("all_reduce", "reduce"):
        return [reduced(0)]
    if kind == "reduce_scatter":
        return [reduced(rank)]
    if kind in ("all_gather", "gather"):
        return [of[r][0] for r in range(size)]
    if kind == "all_to_all":
        return [of[r][rank] for r in range(size)]
    return [of[root][rank if kind == "scatter" else 0]]


def check_calls(
    members: m.Members, size: int, kind: str, calls: list[tuple[int, str, str]]
) -> None:
    """Compare the outputs of calls with those of NumPy; equal reductions have equal bits."""
    result = results(members, size, m.run_collectives, kind, calls)
    for number, call in enumerate(calls):
        for rank in range(size):
            where = f"{members.provider.name}: {kind}{call}, rank {rank} of {size}"
            got, want = result[rank][number], expected(kind, rank, size, *call)
            assert len(got) == len(want), where
            for a, b in zip(got, want, strict=True):
                assert a.dtype == b.dtype, where
                if kind in REDUCED and a.dtype.kind in "fc":
                    near = 1e-2 if a.dtype == np.float16 else 1e-4
                    np.testing.assert_allclose(a, b, rtol=near, atol=near, err_msg=where)
                else:
                    np.testing.assert_array_equal(a, b, err_msg=where)
        if kind == "all_reduce":
            bits = {result[rank][number][0].tobytes() for rank in range(size)}
            assert len(bits) == 1, f"{kind}{call}: the same bits in all members are required"


@pytest.mark.parametrize("kind", KINDS)
def test_values(members: m.Members, size: int, kind: str) -> None:
    calls = [(count, dtype, "sum") for dtype in DTYPES for count in COUNTS]
    check_calls(members, size, kind, calls)


@pytest.mark.parametrize("kind", KINDS)
def test_large_tensors(members: m.Members, size: int, kind: str) -> None:
    check_calls(members, size, kind, [(1_000_003, "float32", "max")])


@pytest.mark.parametrize("kind", sorted(REDUCED))
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_reductions(members: m.Members, size: int, kind: str, reduction: str) -> None:
    dtypes = ["float16", "float32", "float64", "complex128"]
    if reduction in ("and", "or", "xor"):
        dtypes = []
    if reduction in ("min", "max"):
        dtypes.remove("complex128")
    if reduction != "mean":
        dtypes += ["bool", "uint8", "int16", "int32", "int64"]
    check_calls(members, size, kind, [(333, dtype, reduction) for dtype in dtypes])


@pytest.mark.parametrize("kind", ["all_reduce", "broadcast", "reduce"])
def test_the_output_may_be_the_input(members: m.Members, size: int, kind: str) -> None:
    inputs = [m.input_of(rank, 1000, "float32") for rank in range(size)]
    for rank, got in enumerate(results(members, size, m.write_over_input, kind)):
        total = np.sum(inputs, 0)
        if kind == "reduce" and rank:
            np.testing.assert_array_equal(got, inputs[rank])
        else:
            want = inputs[0] if kind == "broadcast" else total
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_the_bits_do_not_depend_on_the_order_of_arrival(members: m.Members, size: int) -> None:
    result = {
        bits for all_bits in results(members, size, m.reduce_with_delays) for bits in all_bits
    }
    assert len(result) == 1


def test_works_can_be_waited_for_in_any_order(members: m.Members, size: int) -> None:
    counts = (10, 300_007, 1, 5000, 1000, 3)
    for result in results(members, size, m.wait_out_of_order):
        for count, got in zip(counts, result, strict=True):
            want = np.sum([m.input_of(rank, count, "float64") for rank in range(size)], 0)
            np.testing.assert_allclose(got, want)


def test_a_work_is_done_when_all_members_have_called(members: m.Members, several: int) -> None:
    assert results(members, several, m.query_unfinished) == [True] * several


@pytest.mark.parametrize("count", [0, 1, 1000, 1_000_003])
def test_messages_around_a_ring(members: m.Members, several: int, count: int) -> None:
    for rank, got in enumerate(results(members, several, m.exchange_with_neighbours, count)):
        np.testing.assert_array_equal(got, m.input_of((rank - 1) % several, count, "float32"))


def test_messages_of_a_tag_arrive_in_order(members: m.Members, several: int) -> None:
    result = results(members, several, m.receive_by_tags)
    assert result[1] == [20, -30, 10, 11, 21, -29, -28, 22, 12]


def test_subgroups_work_at_the_same_time(members: m.Members, size: int) -> None:
    for rank, values in enumerate(results(members, size, m.use_subgroups)):
        part = range(rank % 2, size, 2)
        assert values == [(float(sum(part) + turn * len(part)), size) for turn in range(4)]


@pytest.mark.parametrize("how", ["counts", "kinds", "dtypes", "roots", "reductions", "tags"])
def test_different_calls_fail_everywhere(members: m.Members, several: int, how: str) -> None:
    for rank, error in enumerate(members.run(several, m.call_differently, how, timeout=5.0)):
        assert isinstance(error, m.Failure), f"rank {rank}: different {how} went unnoticed"
        assert error.kind in ("PlaitError", "TimeoutError"), f"rank {rank}: {error}"
        assert error.kind == "TimeoutError" or error.failure in ("", "mismatch"), error


@pytest.mark.parametrize("asynchronously", [False, True])
def test_errors_name_a_missing_member(
    members: m.Members, several: int, asynchronously: bool
) -> None:
    result = members.run(several, m.wait_for_absent, asynchronously)
    waiting = [error for rank, error in enumerate(result) if rank != 1]
    assert all(isinstance(error, m.Failure) for error in waiting), result
    assert "TimeoutError" in [error.kind for error in waiting]
    for error in waiting:
        assert error.kind in ("TimeoutError", "PlaitError")
        assert error.failure in ("", "timed_out"), error
        assert error.text.startswith("all_reduce: ") and "rank 1" in error.text, error


@pytest.mark.parametrize("kind", ["all_reduce", "recv"])
def test_errors_name_a_killed_member(members: m.Members, several: int, kind: str) -> None:
    result = members.run(several, m.wait_for_killed, kind)
    assert result[1] is None
    for rank, error in enumerate(result):
        if rank == 1:
            continue
        assert isinstance(error, m.Failure), f"rank {rank}: the death of rank 1 went unnoticed"
        assert error.kind == "PlaitError" and error.text.startswith(f"{kind}: "), error
        assert error.failure in ("", "lost"), error
        assert "rank 1" in error.text, error


def test_abort_reaches_all(members: m.Members, several: int) -> None:
    for rank, errors in enumerate(members.run(several, m.abort_during_wait)):
        assert isinstance(errors, list), f"rank {rank}: {errors}"
        for number, error in enumerate(errors):
            if rank == 1 and number < 2:
                continue
            assert error is not None, f"rank {rank}: call {number} succeeded after an abort"
            assert error.kind == "PlaitError" and "the loss is not finite" in error.text, error
            assert error.failure in ("", "aborted"), error


def test_wrong_arguments_are_refused(members: m.Members, size: int) -> None:
    for errors in results(members, size, m.call_wrongly):
        for number, error in enumerate(errors):
            assert error is not None, f"call {number} with wrong arguments was accepted"
            kinds = ("ArgumentError", "ValueError", "TypeError", "ShapeError", "DTypeError")
            assert error.kind in kinds, error
            assert ": " in error.text, error


def test_opening_a_group_needs_all_members(members: m.Members, provider: m.Provider) -> None:
    (errors,) = members.run(1, m.open_incomplete_groups, provider.name, provider.where)
    for call, error in errors[:-1]:
        assert error is not None and error.kind in ("ValueError", "OverflowError"), (call, error)
    call, error = errors[-1]
    assert error is not None and error.kind == "TimeoutError", (call, error)


def test_serves(members: m.Members, provider: m.Provider) -> None:
    lacking = []
    for kind in KINDS:
        (result,) = members.run(1, m.run_collectives, kind, [(3, "float32", "sum")])
        if isinstance(result, m.Failure):
            assert result.kind == "NotImplementedError", result.text
            lacking.append(kind)
    assert len(lacking) < len(KINDS), f"{provider.name} lacks every kind"
