"""Random functions over tensors, as text: views, writes in place, reductions, draws, aliases."""

from __future__ import annotations

import dataclasses
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import plait_core as pc

Draw = random.Random
_DTYPES = ("float32",) * 6 + (
    "float64",
    "float16",
    "bfloat16",
    "complex64",
    "int64",
    "int32",
    "bool",
)
_SHAPES: tuple[tuple[int, ...], ...] = (
    (2, 3), (3, 2), (3,), (2,), (4, 3), (2, 3, 4), (3, 1), (1, 3), (), (1,), (0, 3), (4, 4),
    (2, 2, 3),
)  # fmt: skip


@dataclasses.dataclass
class Program:
    """A function in Python's text, and what it takes.

    Args:
        seed: what it was drawn with.
        arguments: how to make each argument: the name of a dtype, a shape, and a layout.
        captured: the same of tensors that it reads as globals.
        lines: its body.
        result: the expression that it returns.
        differentiable: indices of arguments, and behind them captured tensors, that require grad.
    """

    seed: int
    arguments: list[tuple[str, tuple[int, ...], str]]
    captured: list[tuple[str, tuple[int, ...], str]]
    lines: list[str]
    result: str
    differentiable: tuple[int, ...] = ()

    def text(self) -> str:
        """Return the definition of the function ``f``."""
        names = ", ".join(f"a{i}" for i in range(len(self.arguments)))
        body = "".join(f"    global c{i}\n" for i in range(len(self.captured)))
        body += "".join(f"    {line}\n" for line in self.lines)
        return f"def f({names}):\n{body}    return {self.result}\n"

    def function(self, captured: list[Any]) -> Callable[..., Any]:
        """Return the function, over its own captured tensors."""
        space: dict[str, Any] = {"pc": pc}
        space |= {f"c{i}": tensor for i, tensor in enumerate(captured)}
        exec(self.text(), space)
        function: Callable[..., Any] = space["f"]
        return function


def values(dtype: str, shape: tuple[int, ...], numbers: Any) -> Any:
    """Return a tensor with drawn elements in memory of its own; `numbers` is NumPy's generator."""
    if dtype == "bool":
        return pc.from_numpy(numbers.integers(0, 2, shape).astype(bool)).clone()
    if dtype.startswith("int"):
        return pc.from_numpy(np.asarray(numbers.integers(-3, 4, shape), dtype)).clone()
    if dtype == "complex64":
        array = numbers.standard_normal(shape) + 1j * numbers.standard_normal(shape)
        return pc.from_numpy(np.asarray(array, np.complex64)).clone()
    array = np.asarray(numbers.standard_normal(shape), np.float32)
    return pc.from_numpy(array).clone().to(getattr(pc, dtype))


def tensors(kinds: list[tuple[str, tuple[int, ...], str]], numbers: Any) -> list[Any]:
    """Return a tensor of each kind, in memory of its own or, for an alias, in that of the first."""
    result: list[Any] = []
    for dtype, shape, layout in kinds:
        if layout == "same":
            result.append(result[0])
        elif layout == "alias":
            result.append(result[0].detach())
        elif layout == "part":
            result.append(result[0][:1])
        elif layout == "transposed":
            result.append(values(dtype, shape[::-1], numbers).permute(*range(len(shape))[::-1]))
        elif layout == "strided":
            wide = (*shape[:-1], 2 * shape[-1] + 1)
            result.append(values(dtype, wide, numbers)[..., 1::2])
        elif layout == "expanded":
            result.append(values(dtype, (1, *shape[1:]), numbers).expand(*shape))
        else:
            result.append(values(dtype, shape, numbers))
    return result


def _kinds(draw: Draw, n: int, *, aliases: bool) -> list[tuple[str, tuple[int, ...], str]]:
    result: list[tuple[str, tuple[int, ...], str]] = []
    for _ in range(n):
        layout = draw.choice(["dense"] * 6 + ["transposed", "strided", "expanded"])
        if aliases and result and draw.random() < 0.15:
            layout = draw.choice(["same", "alias", "part"])
        dtype, shape = draw.choice(_DTYPES), draw.choice(_SHAPES)
        if layout in ("same", "alias", "part"):
            dtype, shape = result[0][:2]
        if layout in ("strided", "part", "expanded") and not shape:
            layout = "dense"
        result.append((dtype, shape, layout))
    return result


def _is_small(value: Any) -> bool:
    return isinstance(value, pc.Tensor) and value.numel() <= 500


class _Body:
    """The lines of a function while it is drawn: each ran, so that its results are known."""

    def __init__(self, draw: Draw, space: dict[str, Any]) -> None:
        self.draw, self.space = draw, space
        self.names = [name for name in space if name != "pc"]
        self.lines: list[str] = []
        self.is_whole = False  # nothing can be added

    def pick(self) -> str:
        recent = self.names[-4:] if self.draw.random() < 0.6 else self.names
        return self.draw.choice(recent)

    def dim(self, name: str) -> int:
        return self.draw.randrange(-self.space[name].ndim, max(1, self.space[name].ndim))

    def extend(self) -> None:
        line = self.draw.choice(_KINDS)(self)
        target = line.partition(" = ")[0]
        before = dict(self.space)
        shapes = {name: self.space[name].shape for name in self.names}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of an `out` that gets another shape
                exec(line, self.space)
        except Exception:
            self.space.clear()
            self.space.update(before)
            return
        new = [n.strip() for n in target.split(",")] if " = " in line and "[" not in target else []
        if any(before[name].shape != shape for name, shape in shapes.items()):
            self.is_whole = True  # an empty `out` has got another shape: the line is left out
            return
        if any(not _is_small(self.space[name]) for name in new):
            self.space.clear()
            self.space.update(before)
            return
        self.lines.append(line)
        self.names += [name for name in new if name not in self.names]

    def name(self, k: int = 0) -> str:
        return f"v{len(self.lines)}" + "abc"[k : k + 1] * (k > 0)


def _pointwise(b: _Body) -> str:
    x, y, z, to = b.pick(), b.pick(), b.pick(), b.name()
    return to + " = " + b.draw.choice([
        f"{x} + {y}", f"{x} * {y}", f"{x} - {y}", f"{x} / {y}", f"pc.maximum({x}, {y})",
        f"{x} * 0.5", f"2 - {x}", f"{x} > {y}", f"{x} == {y}", f"pc.where({x} > 0, {y}, {z})",
        f"{x}.tanh()", f"{x}.sigmoid()", f"{x}.abs()", f"-{x}", f"{x}.relu()", f"{x}.clamp(-1, 1)",
        f"{x}.sin() * {x}", f"{x}.to({y}.dtype)", f"{x}.float()", f"{x}.long()", f"{x} ** 2",
        f"pc.addcmul({x}, {y}, {z}, value=0.3)", f"pc.lerp({x}, {y}, 0.25)", f"{x}.clone()",
        f"{x}.masked_fill({y}.bool(), 0.5)", f"{x}.add({y}, alpha=2)", f"{x} != {x}",
        f"~{x}.bool()",
        f"{x}.contiguous()", f"{x}.round()", f"{x}.isnan()", f"pc.complex({x}, {y})", f"{x}.conj()",
    ])  # fmt: skip


def _view(b: _Body) -> str:
    x, y, to = b.pick(), b.pick(), b.name()
    d, e = b.dim(x), b.dim(x)
    if b.draw.random() < 0.2:
        return b.draw.choice([
            f"{to}, {b.name(1)} = {x}.split([1, {x}.shape[{d}] - 1], {d})",
            f"{to}, {b.name(1)} = {x}.unbind({d})", f"{to}, {b.name(1)} = {x}.chunk(2, {d})",
            f"{to}, {b.name(1)}, {b.name(2)} = {x}.unbind({d})",
        ])  # fmt: skip
    return to + " = " + b.draw.choice([
        f"{x}[1:]", f"{x}[:, ::2]", f"{x}[..., -1]", f"{x}[0]", f"{x}[None]", f"{x}[:, None, 1:]",
        f"{x}.transpose({d}, {e})", f"{x}.reshape(-1)", f"{x}.view(-1)", f"{x}.reshape(-1, 2)",
        f"{x}.expand(2, *{x}.shape)", f"{x}.unsqueeze({d})", f"{x}.squeeze()", f"{x}.detach()",
        f"{x}.diagonal()", f"{x}.narrow({d}, 1, 1)", f"{x}.select({d}, 1)", f"{x}.expand_as({y})",
        f"{x}.unfold({d}, 2, 1)", f"{x}.flip({d})", f"{x}.real", f"{x}.imag", f"{x}.mT",
        f"{x}.view({x}.shape)", f"{x}.roll(1, {d})", f"{x}.T",
        f"{x}.movedim({d}, {e})", f"pc.view_as_real({x})",
        f"{x}.diag()", f"{x}.tril()", f"{x}.broadcast_to({y}.shape)", f"{x}.swapaxes(0, -1)",
    ])  # fmt: skip


def _write(b: _Body) -> str:
    x, y, z = b.pick(), b.pick(), b.pick()
    d = b.dim(x)
    return b.draw.choice([
        f"{x}.add_({y})", f"{x}.mul_({y})", f"{x}.copy_({y})", f"{x}.zero_()", f"{x}.fill_(0.5)",
        f"{x}[0] = {y}", f"{x}[:, 0] = {y}", f"{x}[1:] = {y}[:-1]", f"{x}[{y}.bool()] = 0.25",
        f"{x}.clamp_(-1, 1)", f"{x}.tanh_()", f"{x}.masked_fill_({y}.bool(), 2)", f"{x}.neg_()",
        f"pc.add({x}, {y}, out={z})", f"pc.mul({x}, 2, out={y})",
        f"{x}.index_fill_({d}, pc.tensor([0]), 1)",
        f"{x}.index_add_({d}, pc.tensor([0, 1]), {y})", f"{x}.addcmul_({y}, {z})", f"{x} += 1",
        f"{x}.transpose({d}, 0).mul_(2)", f"{x}.view(-1)[::2].add_(1)", f"{x}.lerp_({y}, 0.5)",
        f"{x}.scatter_({d}, pc.zeros_like({y}, dtype=pc.int64), {y})", f"{x}.sub_({x}.mean())",
        f"{x}.uniform_()", f"{x}.normal_()",
        f"{x}.diagonal().fill_(3)", f"{x}.detach().mul_(0.5)", f"{x}.add_({x}.flip({d}))",
        f"{x} *= {y}",
        f"pc.sum({x}, {d}, out={y})", f"pc.matmul({x}, {y}, out={z})", f"{x}.fill_diagonal_(1)",
        f"{x}.triu_()", f"{x}.cumsum_({d})", f"{x}.add_({x}.T)", f"{x}[...] = {y}",
        f"{x}.bernoulli_(0.5)",
        f"{x}.index_put_((pc.tensor([0, 0]),), {y}, accumulate=True)",
        f"pc.cat([{x}, {y}], out={z})",
    ])  # fmt: skip


def _reduction(b: _Body) -> str:
    x, y, to = b.pick(), b.pick(), b.name()
    d = b.dim(x)
    if b.draw.random() < 0.25:
        return f"{to}, {b.name(1)} = " + b.draw.choice([
            f"{x}.max({d})", f"{x}.sort({d})", f"{x}.topk(1, {d})", f"{x}.median({d})",
            f"{x}.cummax({d})", f"pc.var_mean({x}, {d})", f"pc.aminmax({x})",
        ])  # fmt: skip
    return to + " = " + b.draw.choice([
        f"{x}.sum()", f"{x}.sum({d})", f"{x}.sum({d}, keepdim=True)", f"{x}.mean({d})",
        f"{x}.mean()",
        f"{x}.argmax({d})", f"{x}.cumsum({d})", f"{x}.softmax({d})", f"{x}.logsumexp({d})",
        f"{x}.std({d})", f"{x}.norm()", f"{x}.any({d})", f"{x}.all()", f"{x}.prod({d})",
        f"{x} @ {y}",
        f"{x}.amax()", f"pc.matmul({x}, {y}.mT)", f"{x}.log_softmax({d})", f"pc.dot({x}, {y})",
        f"{x}.cumprod({d})", f"pc.einsum('ij,kj->ik', {x}, {y})", f"{x}.count_nonzero()",
    ])  # fmt: skip


def _joined(b: _Body) -> str:
    x, y, to = b.pick(), b.pick(), b.name()
    d = b.dim(x)
    return to + " = " + b.draw.choice([
        f"pc.cat([{x}, {y}], {d})", f"pc.stack([{x}, {y}], {d})", f"pc.cat([{x}, {x}[:1]])",
        f"{x}[pc.tensor([1, 0])]", f"{x}.index_select({d}, pc.tensor([0, 1, 1]))",
        f"{x}.repeat(2, 1)",
        f"{x}.gather({d}, pc.zeros_like({x}, dtype=pc.int64))", f"{x}[:, pc.tensor([0, 0])]",
        f"{x}.take(pc.tensor([0, 1]))", f"pc.tensor([1.0, 2.0, 3.0]) * {x}", f"pc.arange(3) + {x}",
        f"pc.zeros({x}.shape) + {x}", f"pc.ones_like({x})", f"{x}.new_full((2, 2), 3)",
        f"{x}.new_zeros(3)",
        f"{x}.scatter_add({d}, pc.zeros_like({y}, dtype=pc.int64), {y})", "pc.full((2, 3), 0.5)",
        f"{x}[[1, 0], [0, 1]]", "pc.empty(3).fill_(2)", f"{x}.repeat_interleave(2, {d})",
        "pc.eye(3)",
        f"{x}[{y}.long().abs().reshape(-1) % {x}.shape[0]]",
    ])  # fmt: skip


def _drawn(b: _Body) -> str:
    x, to = b.pick(), b.name()
    return to + " = " + b.draw.choice([
        f"pc.dropout({x}, 0.5, True)", f"pc.rand_like({x})", "pc.randn(2, 3)",
        f"pc.bernoulli({x}.sigmoid())",
        f"pc.rand(3) + {x}", "pc.randint(0, 5, (3,))", "pc.randperm(4)", f"pc.normal({x}, 1.0)",
    ])  # fmt: skip


_KINDS = (
    *(_pointwise, _pointwise, _view, _view, _write, _write, _write),
    *(_reduction, _joined, _drawn),
)


def draw_program(seed: int, *, gradients: bool = False) -> Program:
    """Draw a program; the same one for the same seed.

    Args:
        gradients: let some floating arguments and captured tensors require grad.
    """
    draw = random.Random(seed)
    arguments = _kinds(draw, draw.randint(1, 3), aliases=not gradients)
    captured = _kinds(draw, draw.randint(0, 2), aliases=False)
    numbers = np.random.default_rng(seed)
    given = [*tensors(arguments, numbers), *tensors(captured, numbers)]
    layouts = [kind[2] for kind in (*arguments, *captured)]
    able = [i for i, t in enumerate(given) if t.is_floating_point() or t.is_complex()]
    able = [i for i in able if gradients and layouts[i] == "dense"]
    sources = [i for i in able if draw.random() < 0.7]
    for i in sources:
        given[i].requires_grad_()
    names = [f"a{i}" for i in range(len(arguments))] + [f"c{i}" for i in range(len(captured))]
    body = _Body(draw, {"pc": pc, **dict(zip(names, given, strict=True))})
    for _ in range(draw.randint(4, 24)):
        if not body.is_whole:
            body.extend()
    candidates = body.names
    if gradients:  # the parts of the gradient of an argument that is a result come in another order
        known = {id(t) for t in given}
        candidates = [n for n in body.names if id(body.space[n]) not in known] or body.names
    results = draw.sample(candidates, min(len(candidates), draw.randint(1, 4)))
    result = ", ".join(results)
    if len(results) > 1 or draw.random() < 0.3:
        result = "[" + result + "]"
    return Program(seed, arguments, captured, body.lines, result, tuple(sources))
