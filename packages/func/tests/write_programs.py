"""Generated programs that write into tensors and views of them, for any library with PyTorch's
surface: `library` is that module.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

# A program gets a sample `a` of shape (2, 3) and `w` of shape (3,), and makes
# a tensor of shape (2, 3).
TENSORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "zeros": lambda library, a, w: library.zeros(2, 3),
    "new_zeros": lambda library, a, w: a.new_zeros(2, 3),
    "full": lambda library, a, w: library.full((2, 3), 2.0),
    "filled": lambda library, a, w: library.empty(2, 3).fill_(1.0),
    "zeros_like": lambda library, a, w: library.zeros_like(a),
    "product": lambda library, a, w: a * 2.0,
    "product of w": lambda library, a, w: library.ones(2, 3) * w,
    "product of both": lambda library, a, w: a * w,
    "clone": lambda library, a, w: a.clone(),
    "transposed": lambda library, a, w: a.new_ones(3, 2).t(),
    "transposed product": lambda library, a, w: (a.t() * 2.0).t(),
    "transposed copy": lambda library, a, w: a.t().contiguous().t(),
    "part": lambda library, a, w: library.ones(4, 6)[1:3, ::2],
    "part of a product": lambda library, a, w: library.cat([a, a * w])[1:3],
    "stack": lambda library, a, w: library.stack([a[0], w]),
}

VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda z: z, "first": lambda z: z[0], "column": lambda z: z[..., -1],
    "rest": lambda z: z[1:], "transpose": lambda z: z.transpose(0, -1),
    "steps": lambda z: z[..., ::2], "diagonal": lambda z: z.diagonal(), "None": lambda z: z[None],
    "narrow": lambda z: z.narrow(-1, 0, 1), "select": lambda z: z.select(-1, 0),
    "split": lambda z: z.split(1)[-1], "unbind": lambda z: z.unbind()[0],
    "chunk": lambda z: z.chunk(2)[0], "unsqueeze": lambda z: z.unsqueeze(1),
    "movedim": lambda z: z.movedim(0, -1), "view_as": lambda z: z.view_as(z),
    "squeeze": lambda z: z.squeeze(), "last": lambda z: z[..., -1:],
    "unflatten": lambda z: z.unflatten(0, (1, z.shape[0])),
    "permute": lambda z: z.permute(*reversed(range(z.dim()))), "empty": lambda z: z[..., :0],
}  # fmt: skip
_PARTS = frozenset(
    ("first", "split", "unbind", "chunk", "last", "column", "select", "narrow", "rest")
)


def _view(name: str, z: Any) -> Any:
    """Return a view, or the tensor if it has no such view."""
    without = z.dim() == 0 or (name == "diagonal" and z.dim() != 2)
    return z if without or (name in _PARTS and 0 in z.shape) else VIEWS[name](z)


class Source:
    """The values that a program writes into a view."""

    KINDS = ("number", "sum", "of w", "row", "of a", "of both")

    def __init__(self, library: Any, a: Any, w: Any, kind: str) -> None:
        self.library, self.a, self.w, self.kind = library, a, w, kind

    def value(self, view: Any) -> Any:
        n = view.numel()
        if self.kind == "number":
            return 0.5
        if self.kind in ("sum", "of w"):
            return self.a.sum() * self.w[0] if self.kind == "sum" else self.w[1] * 2
        if n > 6 or self.kind == "row":
            return self.a[0, :1]
        factor = self.w[0] if self.kind == "of both" else 1
        return (self.a.reshape(-1)[:n] * factor).reshape(view.shape)

    def tensor(self, view: Any) -> Any:
        value = self.value(view)
        return self.library.as_tensor(value) if isinstance(value, float) else value

    def whole(self, view: Any) -> Any:
        return self.tensor(view).expand(view.shape)


def _set(view: Any, key: Any, value: Any) -> None:
    view[key] = value


def _first(source: Source, view: Any) -> Any:
    """Return an index of the first row, with the dimensions of the view."""
    return source.library.zeros(1, dtype=source.library.int64).reshape((1,) * view.dim())


def _index(source: Source, *numbers: int) -> Any:
    return source.library.tensor(numbers)


# Writes to a view `v` of any shape; a source `s` makes what is written.
WRITES: dict[str, Callable[[Any, Source], Any]] = {
    "copy_": lambda v, s: v.copy_(s.tensor(v)), "add_": lambda v, s: v.add_(s.value(v)),
    "sub_": lambda v, s: v.sub_(s.value(v), alpha=2), "mul_": lambda v, s: v.mul_(s.value(v)),
    "div_": lambda v, s: v.div_(s.value(v) + 2), "+=": lambda v, s: v.__iadd__(s.value(v)),
    "pow_": lambda v, s: v.pow_(2), "fill_": lambda v, s: v.fill_(s.a.sum()),
    "zero_": lambda v, s: v.zero_(), "clamp_": lambda v, s: v.clamp_(-1, 1),
    "tanh_": lambda v, s: v.tanh_(), "addcmul_": lambda v, s: v.addcmul_(s.tensor(v), s.w[0]),
    "lerp_": lambda v, s: v.lerp_(s.whole(v), 0.5), "itself": lambda v, s: v.add_(v),
    "double": lambda v, s: v.copy_(v * 2), "detached": lambda v, s: v.mul_(s.tensor(v).detach()),
    "where": lambda v, s: v.copy_(s.library.where(v.detach() > 0.5, v, s.tensor(v))),
    "[...]": lambda v, s: _set(v, ..., s.value(v)),
    "[mask]": lambda v, s: _set(v, v.detach() > 0.5, 0.25),
    "[mask] of a": lambda v, s: _set(v, v.detach() > 0.5, s.a.sum()),
    "masked_fill_": lambda v, s: v.masked_fill_(v.detach() > 1, 0.25),
    "masked_fill_ of a": lambda v, s: v.masked_fill_(v.detach() > 1, s.a.sum()),
}  # fmt: skip
# Writes to a part of a view that has a dimension, and elements along it.
WRITES_OF_ROWS: dict[str, Callable[[Any, Source], Any]] = {
    "[:]": lambda v, s: _set(v, slice(None), s.value(v)),
    "[int]": lambda v, s: _set(v, -1, s.tensor(v[-1])),
    "[list]": lambda v, s: _set(v, [0, -1], s.tensor(v[[0, -1]])),
    "index_put_": lambda v, s: v.index_put_((_index(s, 0, 0),), s.a[0, :1], accumulate=True),
    "index_put_ by a": lambda v, s: v.index_put_(
        (s.a[:1].detach().argmax(-1) % len(v),), s.a.sum()
    ),
    "index_add_": lambda v, s: v.index_add_(0, _index(s, 0), s.whole(v[:1])),
    "index_copy_": lambda v, s: v.index_copy_(0, _index(s, 0), s.whole(v[:1])),
    "index_fill_": lambda v, s: v.index_fill_(0, _index(s, 0), s.a.sum()),
    "scatter_": lambda v, s: v.scatter_(0, _first(s, v), s.whole(v[:1])),
    "scatter_add_": lambda v, s: v.scatter_add_(0, _first(s, v), s.whole(v[:1])),
    "put_": lambda v, s: v.put_(_index(s, 0), s.a[0, :1]),
    "fill_diagonal_": lambda v, s: v.fill_diagonal_(2.0) if v.dim() == 2 else None,
    "masked_scatter_": lambda v, s: (
        v.masked_scatter_(s.library.ones(v.shape, dtype=s.library.bool), s.a)
        if v.numel() <= 6
        else None
    ),
}


class Step(NamedTuple):
    """A write into a view that was taken before, into one of a tensor, or one of a view of it; or
    the same after a new tensor took the place of the old one.
    """

    target: str
    first: str
    second: str
    write: str
    source: str


class Program(NamedTuple):
    """A program: what it makes, a view that is taken at once, and what it does."""

    tensor: str
    view: str
    steps: list[Step]
    result: str

    def run(self, library: Any, a: Any, w: Any, *, scalar: bool) -> Any:
        """Return what the program returns, or one number of all tensors in it."""
        z = TENSORS[self.tensor](library, a, w)
        view = _view(self.view, z)
        views = [view]
        for step in self.steps:
            if step.target == "new":
                z = z * 1.5
                view = _view(self.view, z)
            target = view if step.target == "old" else _view(step.first, z)
            if step.target == "chain":
                target = _view(step.second, target)
            views.append(target)
            source = Source(library, a, w, step.source)
            if step.write in WRITES:
                WRITES[step.write](target, source)
            elif target.dim() and target.numel():
                WRITES_OF_ROWS[step.write](target, source)
        if not scalar and self.result != "number":
            return {"tensor": z, "product": z * 1, "view": view * 2}[self.result]
        return (z * z).sum() + sum((each * (i + 1)).sum() for i, each in enumerate(views))


def program(seed: int) -> Program:
    """Return the program of a seed."""
    r = random.Random(seed)
    writes = [*WRITES, *WRITES_OF_ROWS]
    steps = [
        Step(
            r.choice(["old", "late", "chain", "new"]), r.choice(list(VIEWS)),
            r.choice(list(VIEWS)), r.choice(writes), r.choice(Source.KINDS),
        )
        for _ in range(r.randint(1, 4))
    ]  # fmt: skip
    results = ["number", "tensor", "product", "view"]
    return Program(r.choice(list(TENSORS)), r.choice(list(VIEWS)), steps, r.choice(results))
