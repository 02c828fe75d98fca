"""The guide's table of operators to replace: each function reaches the kernels that it names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_abi
import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F
from plait_profiler import profile

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "replacing.md"


def table() -> dict[str, tuple[set[str], set[str]]]:
    """Return the rows: function, operators forward, operators backward."""
    rows = re.findall(r"^\| (?!For )([^|]+) \|([^|]*)\|([^|]*)\|$", GUIDE.read_text(), re.MULTILINE)
    results = {}
    for label, forward, backward in rows:
        first = set(re.findall(r"`(\w+)`", forward))
        second = first if "the same" in backward else set(re.findall(r"`(\w+)`", backward))
        results[label] = (first, second)
    return results


def leaf(*shape: int) -> Any:
    return pc.randn(*shape, requires_grad=True)


def sequence(layer: Any) -> Any:
    return layer(leaf(4, 2, 6))[0]


def attention(**options: Any) -> Any:
    x = leaf(3, 2, 6)
    return nn.MultiheadAttention(6, 2)(x, x, x, **options)[0]


def batch_norm() -> Any:
    return F.batch_norm(leaf(4, 3), pc.zeros(3), pc.ones(3), leaf(3), leaf(3), training=True)


def norms() -> list[Any]:
    plain = [F.layer_norm(leaf(4, 6), (6,)), F.group_norm(leaf(2, 4, 3), 2)]
    return [*plain, F.layer_norm(leaf(4, 6), (6,), leaf(6), leaf(6))]


def targets() -> Any:
    return pc.tensor([0, 1, 2, 0])


def copies() -> Any:
    y = leaf(4, 6).to("float64")
    return [y.t().contiguous(), y.clone(), (y * 1).copy_(leaf(4, 6))]


IMAGE, FILTER = (2, 3, 6, 6), (4, 3, 2, 2)
ROWS: dict[str, Callable[[], Any]] = {
    "`nn.Linear`": lambda: F.linear(leaf(4, 6), leaf(5, 6), leaf(5)),
    "`x @ y`": lambda: [
        *(leaf(4, 6) @ leaf(6, 3), leaf(2, 4, 6) @ leaf(2, 6, 3), leaf(4, 6) @ leaf(6)),
        *(leaf(6) @ leaf(6), pc.addmm(leaf(4, 3), leaf(4, 6), leaf(6, 3))),
        pc.einsum("ij,jk->ik", leaf(4, 6), leaf(6, 3)),
    ],
    "convolutions": lambda: [
        *(F.conv1d(leaf(2, 3, 8), leaf(4, 3, 3)), F.conv2d(leaf(*IMAGE), leaf(*FILTER))),
        F.conv3d(leaf(1, 2, 4, 4, 4), leaf(3, 2, 2, 2, 2)),
    ],
    "`conv_transpose`": lambda: [
        F.conv_transpose1d(leaf(2, 3, 8), leaf(3, 4, 3)),
        F.conv_transpose2d(leaf(*IMAGE), leaf(3, 4, 2, 2)),
        F.conv_transpose3d(leaf(1, 2, 4, 4, 4), leaf(2, 3, 2, 2, 2)),
    ],
    "`layer_norm`": norms,
    "`batch_norm`": batch_norm,
    "`scaled_dot": lambda: F.scaled_dot_product_attention(*(leaf(2, 2, 5, 8) for _ in range(3))),
    "`MultiheadAttention`": attention,
    "`LSTM`": lambda: [sequence(nn.LSTM(6, 5)), sequence(nn.GRU(6, 5))],
    "`softmax`": lambda: [F.softmax(leaf(4, 6), 1), F.log_softmax(leaf(4, 6), 1)],
    "`cross_entropy`": lambda: F.cross_entropy(leaf(4, 3), targets()),
    "`nll_loss`": lambda: F.nll_loss(leaf(4, 3), targets()),
    "`gelu`": lambda: [f(leaf(4, 6)) for f in (F.gelu, F.silu, F.relu)],
    "`hardtanh`": lambda: [f(leaf(4, 6)) for f in (F.hardtanh, F.relu6, F.hardswish)],
    "`max_pool1d`": lambda: [F.max_pool1d(leaf(2, 3, 8), 2), F.max_pool2d(leaf(*IMAGE), 2)],
    "`avg_pool2d`": lambda: [F.avg_pool2d(leaf(*IMAGE), 2), F.adaptive_avg_pool2d(leaf(*IMAGE), 2)],
    "`Embedding`": lambda: F.embedding(targets(), leaf(4, 6)),
    "`dropout`": lambda: F.dropout(leaf(4, 6), 0.5),
    "`x[indices]`": lambda: [leaf(4, 6)[targets()], leaf(4, 6).gather(0, targets()[None])],
    "`contiguous`": copies,
    "`cat`": lambda: [pc.cat([leaf(4), leaf(4)]), pc.stack([leaf(4), leaf(4)])],
    "`rand`": lambda: [pc.rand(3), pc.randn(3), nn.Linear(2, 2)],
}


def called_operators(function: Callable[[], Any]) -> tuple[set[str], Any]:
    with profile() as seen:
        result = function()
    return {event.name for event in seen.events()}, result


def test_the_table_is_covered() -> None:
    rows = table()
    assert len(rows) == len(ROWS)
    for row, start in zip(rows, ROWS, strict=True):
        assert row.startswith(start)
    kernels = {record.name for record in plait_abi.records() if record.kind == "kernel"}
    named = {name for pair in rows.values() for names in pair for name in names}
    assert named <= kernels, sorted(named - kernels)


@pytest.mark.parametrize("row", ROWS)
def test_a_function_calls_the_operators_of_the_table(row: str) -> None:
    (names,) = (names for label, names in table().items() if label.startswith(row))
    forward, results = called_operators(ROWS[row])
    assert names[0] <= forward, sorted(forward)
    results = results if isinstance(results, list) else [results]
    roots = [y for y in results if getattr(y, "requires_grad", False)]
    if names[1]:
        backward, _ = called_operators(lambda: [y.sum().backward() for y in roots])
        assert names[1] <= forward | backward, sorted(backward)
