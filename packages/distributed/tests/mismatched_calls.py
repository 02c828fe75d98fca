"""Pairs of calls that do not match, and random collectives after them whose values are known.

`sweep` runs in each rank of a group with the same seed, so every rank knows the calls of all.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import plait_core as pc
import plait_distributed as dist

Call = Callable[[int, int], Any]  # of a rank and the number of ranks

ELEMENTS = {"few": 3, "some": 5000, "many": 150_000}  # one letter or chunk, and several
DTYPES = {"float32": pc.float32, "int64": pc.int64, "float16": pc.float16}
OPS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "product": dist.ReduceOp.PRODUCT}


def _ones(n: int, dtype: str = "float32") -> Any:
    return pc.ones(n, dtype=DTYPES[dtype])


def _wait(work: Any) -> None:
    if work is not None:
        work.wait()


def _calls() -> dict[str, Call]:
    """Every kind of collective, and what makes two calls of one kind differ."""
    calls: dict[str, Call] = {}
    for size, n in ELEMENTS.items():
        calls[f"all_reduce {size}"] = lambda r, k, n=n: dist.all_reduce(_ones(n))
        calls[f"all_reduce {size} shared"] = lambda r, k, n=n: dist.all_reduce(
            _ones(n).share_memory_(), async_op=False
        )
        calls[f"all_reduce {size} later"] = lambda r, k, n=n: _wait(
            dist.all_reduce(_ones(n), async_op=True)
        )
        calls[f"broadcast {size}"] = lambda r, k, n=n: dist.broadcast(_ones(n), 0)
        calls[f"broadcast {size} later"] = lambda r, k, n=n: _wait(
            dist.broadcast(_ones(n), 0, async_op=True)
        )
        calls[f"reduce {size}"] = lambda r, k, n=n: dist.reduce(_ones(n), 0)
        calls[f"all_gather {size}"] = lambda r, k, n=n: dist.all_gather(
            [_ones(n) for _ in range(k)], _ones(n)
        )
        calls[f"gather {size}"] = lambda r, k, n=n: dist.gather(
            _ones(n), [_ones(n) for _ in range(k)] if r == 0 else None, 0
        )
        calls[f"scatter {size}"] = lambda r, k, n=n: dist.scatter(
            _ones(n), [_ones(n) for _ in range(k)] if r == 0 else None, 0
        )
        calls[f"reduce_scatter {size}"] = lambda r, k, n=n: dist.reduce_scatter(
            _ones(n), [_ones(n) for _ in range(k)]
        )
        calls[f"all_to_all {size}"] = lambda r, k, n=n: dist.all_to_all(
            [_ones(n) for _ in range(k)], [_ones(n) for _ in range(k)]
        )
        calls[f"all_to_all_single {size}"] = lambda r, k, n=n: dist.all_to_all_single(
            _ones(n * k), _ones(n * k)
        )
        calls[f"all_gather_object {size}"] = lambda r, k, n=n: dist.all_gather_object(
            [None] * k, "x" * n
        )
        calls[f"gather_object {size}"] = lambda r, k, n=n: dist.gather_object(
            "x" * n, [None] * k if r == 0 else None, 0
        )
        calls[f"broadcast_object_list {size}"] = lambda r, k, n=n: dist.broadcast_object_list(
            ["x" * n], 0
        )
        calls[f"scatter_object_list {size}"] = lambda r, k, n=n: dist.scatter_object_list(
            [None], ["x" * n] * k if r == 0 else None, 0
        )
    for op, value in OPS.items():
        calls[f"all_reduce {op}"] = lambda r, k, o=value: dist.all_reduce(_ones(7), o)
        calls[f"reduce_scatter {op}"] = lambda r, k, o=value: dist.reduce_scatter(
            _ones(7), [_ones(7) for _ in range(k)], o
        )
    for dtype in DTYPES:
        calls[f"all_reduce {dtype}"] = lambda r, k, d=dtype: dist.all_reduce(_ones(70_000, d))
        calls[f"broadcast {dtype}"] = lambda r, k, d=dtype: dist.broadcast(_ones(70, d), 0)
    calls["broadcast from 1"] = lambda r, k: dist.broadcast(_ones(5000), 1)
    calls["reduce to 1"] = lambda r, k: dist.reduce(_ones(5000), 1)
    calls["all_gather_coalesced"] = lambda r, k: dist.all_gather_coalesced(
        [[_ones(3), _ones(4)] for _ in range(k)], [_ones(3), _ones(4)]
    )
    calls["all_gather_coalesced later"] = lambda r, k: _wait(
        dist.all_gather_coalesced(
            [[_ones(3), _ones(4, "int64")] for _ in range(k)],
            [_ones(3), _ones(4, "int64")],
            async_op=True,
        )
    )
    calls["barrier"] = lambda r, k: dist.barrier()
    calls["barrier later"] = lambda r, k: _wait(dist.barrier(async_op=True))
    calls["monitored_barrier"] = lambda r, k: dist.monitored_barrier()
    calls["new_group"] = lambda r, k: dist.new_group(list(range(k)))
    calls["new_group of one"] = lambda r, k: dist.new_group([1])
    return calls


# calls that are refused before anything is sent: one rank alone may make them at any time
REFUSED: dict[str, Call] = {
    "a reduction of floats by bits": lambda r, k: dist.all_reduce(_ones(3), dist.ReduceOp.BAND),
    "a root that is no rank": lambda r, k: dist.broadcast(_ones(3), k + 5),
    "a list of the wrong length": lambda r, k: dist.all_gather([_ones(3)] * (k + 1), _ones(3)),
    "outputs of another shape": lambda r, k: dist.all_gather([_ones(4)] * k, _ones(3)),
    "outputs of another dtype": lambda r, k: dist.reduce_scatter(_ones(3, "int64"), [_ones(3)] * k),
    "no tensor": lambda r, k: dist.all_reduce("x"),
    "an object that cannot be pickled": lambda r, k: dist.all_gather_object([None] * k, lambda: 0),
    "no list": lambda r, k: dist.gather_object("x", "none" if r == 0 else None, r),
    "unknown ranks": lambda r, k: dist.new_group([k + 1]),
    "a negative timeout": lambda r, k: dist.monitored_barrier(timeout=-1),
}


def _agreement(name: str) -> str:
    """Return what ranks must agree on: objects may have any size."""
    words = [word for word in name.split() if word not in ("later", "shared")]
    return words[0] if "object" in words[0] else " ".join(words)


def pairs_of_calls() -> list[tuple[str, str]]:
    """Every two calls that do not match, in both orders."""
    pairs = itertools.permutations(_calls(), 2)
    return [(a, b) for a, b in pairs if _agreement(a) != _agreement(b)]


def some_pairs(seed: int, each: int) -> list[tuple[str, str]]:
    """Random pairs: each call is the first of `each` pairs."""
    source, calls = random.Random(seed), list(_calls())
    results = []
    for first in calls:
        others = [other for other in calls if _agreement(first) != _agreement(other)]
        results += [(first, other) for other in source.sample(others, each)]
    return results


def sweep(
    rank: int, size: int, seed: int, pairs: Iterable[tuple[str, str]], collectives: int
) -> list[str]:
    """Make each pair of calls, and random collectives after it; return the faults."""
    source, calls, wrong = random.Random(seed), _calls(), list[str]()
    for first, second in pairs:
        choice = [first] * size
        others = source.sample(range(size), source.randint(1, size - 1))
        for other in others:
            choice[other] = second
        wrong += _refused(source, rank, size)
        try:
            calls[choice[rank]](rank, size)
            wrong.append(f"{first} and {second}: no error")
        except dist.MismatchError:
            pass
        except Exception as error:
            wrong.append(f"{first} and {second}: {type(error).__name__}: {error}")
        for _ in range(collectives):
            text = check_a_collective(source.randrange(1 << 30), rank, size)
            wrong += [f"after {first} and {second}: {text}"] if text else []
        if len(wrong) > 20:
            return wrong
    return wrong


def _refused(source: random.Random, rank: int, size: int) -> list[str]:
    caller, name = source.randrange(2 * size), source.choice(list(REFUSED))
    if caller != rank:
        return []
    try:
        REFUSED[name](rank, size)
    except dist.DistError as error:
        return [f"{name}: {type(error).__name__}: {error}"]
    except Exception:
        return []
    return [f"{name}: no error"]


def _data(seed: int, rank: int, n: int, dtype: str) -> Any:
    """Small whole numbers, whose sums are exact in every dtype."""
    return np.random.default_rng([seed, rank]).integers(-3, 4, n).astype(dtype)


def check_a_collective(seed: int, rank: int, size: int) -> str:
    """Call a random collective; return the fault of its values, or ''."""
    source = random.Random(seed)
    kind = source.choice(list(_CHECKS))
    n = source.choice([1, 3, 64, 1000, 5000, 5000, 20_000, 100_000])
    dtype, root = source.choice(list(DTYPES)), source.randrange(size)
    rows = [_data(seed, each, n, dtype) for each in range(size)]
    own = pc.tensor(rows[rank].copy())
    try:
        result, expected = _CHECKS[kind](own, rows, rank, root)
    except Exception as error:
        return f"{kind} of {n} {dtype}: {type(error).__name__}: {error}"
    if len(result) != len(expected):
        return f"{kind} of {n} {dtype}: {len(result)} results"
    for got, right in zip(result, expected, strict=True):
        if not np.array_equal(np.asarray(got), np.asarray(right)):
            return f"{kind} of {n} {dtype} in rank {rank}: wrong values"
    return ""


def _gathered(call: Any, own: Any, rows: Any, rank: int, root: int) -> Any:
    out = [pc.empty_like(own) for _ in rows]
    call(out)
    return [x.numpy() for x in out], rows


def _all_reduce(own: Any, rows: Any, rank: int, root: int) -> Any:
    dist.all_reduce(own)
    return [own.numpy()], [sum(rows[1:], rows[0])]


def _all_reduce_in_place(own: Any, rows: Any, rank: int, root: int) -> Any:
    own = own.share_memory_()
    dist.all_reduce(own, dist.ReduceOp.MAX)
    dist.barrier()
    return [own.numpy()], [np.maximum.reduce(rows)]


def _several(own: Any, rows: Any, rank: int, root: int) -> Any:
    twice = own.clone()
    works = [dist.all_reduce(own, async_op=True), dist.broadcast(twice, root, async_op=True)]
    for work in works:
        _wait(work)
    return [own.numpy(), twice.numpy()], [sum(rows[1:], rows[0]), rows[root]]


def _broadcast(own: Any, rows: Any, rank: int, root: int) -> Any:
    dist.broadcast(own, root)
    return [own.numpy()], [rows[root]]


def _reduce(own: Any, rows: Any, rank: int, root: int) -> Any:
    dist.reduce(own, root)
    return [own.numpy()], [sum(rows[1:], rows[0]) if rank == root else rows[rank]]


def _gather(own: Any, rows: Any, rank: int, root: int) -> Any:
    if rank == root:
        return _gathered(lambda out: dist.gather(own, out, root), own, rows, rank, root)
    dist.gather(own, None, root)
    return [], []


def _scatter(own: Any, rows: Any, rank: int, root: int) -> Any:
    dist.scatter(own, [pc.tensor(row.copy()) for row in rows] if rank == root else None, root)
    return [own.numpy()], [rows[rank]]


def _reduce_scatter(own: Any, rows: Any, rank: int, root: int) -> Any:
    out = pc.empty_like(own)
    dist.reduce_scatter(out, [own * i for i in range(len(rows))])
    return [out.numpy()], [sum(rows[1:], rows[0]) * rank]


def _all_to_all(own: Any, rows: Any, rank: int, root: int) -> Any:
    out = [pc.empty_like(own) for _ in rows]
    dist.all_to_all(out, [own * i for i in range(len(rows))])
    return [x.numpy() for x in out], [row * rank for row in rows]


def _objects(own: Any, rows: Any, rank: int, root: int) -> Any:
    out: list[Any] = [None] * len(rows)
    dist.all_gather_object(out, own.tolist()[: 100 * (rank + 1)])
    return out, [row.tolist()[: 100 * (each + 1)] for each, row in enumerate(rows)]


_CHECKS: dict[str, Callable[[Any, Any, int, int], Any]] = {
    "all_reduce": _all_reduce,
    "all_reduce of shared memory": _all_reduce_in_place,
    "all_reduce and broadcast": _several,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "all_gather": lambda mine, *rest: _gathered(
        lambda out: dist.all_gather(out, mine), mine, *rest
    ),
    "gather": _gather,
    "scatter": _scatter,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "all_gather_object": _objects,
}
