"""`plait_torch`: what is out of range raises an error of PyTorch's class, with its words.

The classes and the words are those of PyTorch 2.13 for the same calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

INDEX, RUNTIME, BOUNDS, RANGE = IndexError, RuntimeError, "out of bounds", "out of range"

# calls with an index, a class or a number of elements that is out of range
POSITIONS: list[tuple[str, type[Exception], str]] = [
    ("x.gather(1, far)", RUNTIME, BOUNDS),
    ("x.scatter(1, far, 1.0)", RUNTIME, BOUNDS),
    ("x.scatter(1, far, one)", RUNTIME, BOUNDS),
    ("x.scatter_add(1, far, one)", RUNTIME, BOUNDS),
    ("x.scatter_reduce(1, far, one, 'sum')", RUNTIME, BOUNDS),
    ("x.index_select(0, five)", INDEX, RANGE),
    ("x.index_select(1, five)", RUNTIME, "out of"),
    ("x.index_add(1, five, x[:, :1])", RUNTIME, BOUNDS),
    ("x.index_copy(1, five, x[:, :1])", INDEX, BOUNDS),
    ("x.index_fill(1, five, 1.0)", INDEX, BOUNDS),
    ("x.index_reduce(1, five, x[:, :1], 'mean')", INDEX, RANGE),
    ("x.take(torch.tensor([9]))", INDEX, RANGE),
    ("x.put(torch.tensor([9]), torch.ones(1))", INDEX, RANGE),
    ("x[five]", INDEX, BOUNDS),
    ("x[:, five]", INDEX, BOUNDS),
    ("x[5]", INDEX, "out of"),
    ("x[0, 7]", INDEX, "out of"),
    ("x[-4]", INDEX, "out of"),
    ("x[0, 0, 0]", INDEX, "too many indices"),
    ("x.index_put((five,), torch.ones(3))", INDEX, BOUNDS),
    ("x.__setitem__(five, 1.0)", INDEX, BOUNDS),
    ("F.embedding(five, x)", INDEX, "index out of range in self"),
    ("F.embedding_bag(far, x)", RUNTIME, "."),
    ("F.nll_loss(x, torch.tensor([9, 9]))", INDEX, "Target 9 is out of bounds"),
    ("F.cross_entropy(x, torch.tensor([9, 9]))", INDEX, "Target 9 is out of bounds"),
    ("F.one_hot(torch.tensor([9]), 2)", RUNTIME, "."),
    ("F.multi_margin_loss(x, torch.tensor([9, 9]))", RUNTIME, RANGE),
    ("F.multilabel_margin_loss(x, torch.full((2, 3), 9))", RUNTIME, RANGE),
    ("x.kthvalue(9)", RUNTIME, RANGE),
    ("x.topk(9)", RUNTIME, RANGE),
    ("x.select(0, 5)", INDEX, RANGE),
    ("x.narrow(0, 5, 1)", INDEX, RANGE),
    ("torch.eye(3).to_sparse().index_select(0, five)", INDEX, RANGE),
]
# calls with a dimension that is out of range
DIMENSIONS = """
    x.sum(9); x.mean(9); x.prod(9); x.amax(9); x.argmax(9); x.cumsum(9); x.cummax(9); x.softmax(9)
    x.logsumexp(9); x.std(9); x.norm(2, 9); x.any(9); x.median(9); x.mode(9); x.sort(9)
    x.argsort(9); x.unsqueeze(9); x.squeeze(9); x.flip(9); x.size(9); x.stride(9); x.unbind(9)
    x.chunk(2, 9); x.select(9, 0); x.narrow(9, 0, 1); torch.diff(x, dim=9); x.gather(9, far)
    x.split(1, 9); x.index_select(9, five); x.scatter(9, far, 1.0); x.unique(dim=9); x.movedim(0, 9)
    x.transpose(0, 9); x.permute(0, 9); x.roll(1, 9); F.glu(x, 9); F.normalize(x, dim=9)
    F.cosine_similarity(x, x, dim=9); torch.fft.fft(x, dim=9); torch.stack([x, x], 9)
    torch.cat([x, x], 9); x.unflatten(9, (1, 2)); x.flatten(0, 9); x.topk(1, 9); x.kthvalue(1, 9)
    x.diagonal(0, 0, 9); x.unfold(9, 1, 1); x.quantile(0.5, 9); torch.gradient(x, dim=9)
"""


def _call(torch: Any, text: str) -> Callable[[], Any]:
    names = {
        "torch": torch,
        "F": torch.nn.functional,
        "x": torch.arange(6.0).reshape(2, 3),
        "one": torch.ones(1, 1),
        "five": torch.tensor([5]),
        "far": torch.tensor([[5]]),
    }
    return lambda: eval(text, names)


@pytest.mark.parametrize(("text", "kind", "words"), POSITIONS, ids=[row[0] for row in POSITIONS])
def test_positions(torch: Any, text: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        _call(torch, text)()


@pytest.mark.parametrize("text", DIMENSIONS.replace(";", "\n").strip().splitlines())
def test_dimensions(torch: Any, text: str) -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        _call(torch, text.strip())()
