"""Results in C order of operands in another order, which programs view in other shapes."""

from __future__ import annotations

from typing import Any

import pytest

_EXPRESSIONS = (
    "x.bernoulli()",
    "torch.bernoulli(x, 0.5)",
    "x.masked_fill(x > 0.5, 0)",
    "x.masked_scatter(x > 0.5, y)",
    "torch.nn.functional.rms_norm(x, (5,))",
    "x.index_copy(1, torch.tensor([0, 1]), x[:, :2])",
    "x.repeat(1, 2, 1, 1)",
    "x.repeat_interleave(2, 1)",
    "x.narrow_copy(1, 0, 2)",
)


@pytest.mark.parametrize("expression", _EXPRESSIONS)
def test_results_are_contiguous(torch: Any, expression: str) -> None:
    values = (torch.arange(120) % 7).reshape(2, 3, 4, 5) / 7
    for order in ((0, 1, 3, 2), (3, 2, 1, 0)):
        x = values.permute(order).contiguous().permute(order)
        assert not x.is_contiguous() and torch.equal(x, values)
        results = []
        for operand in (x, values):
            torch.manual_seed(0)
            results.append(eval(expression, {"torch": torch, "x": operand, "y": values + 1}))
        assert results[0].is_contiguous() and torch.equal(*results)
        assert results[0].view(-1).numel() == results[1].numel()
