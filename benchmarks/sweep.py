"""Operators of every kind, small to large, forward and backward, beside PyTorch in one process.

    python benchmarks/sweep.py                              float32, one thread
    python benchmarks/sweep.py --only sort topk --threads 2
    python benchmarks/sweep.py --kinds float16 int64 bool
    python benchmarks/sweep.py --groups fourier --docs

Both sides run in turns (see timing.py), and a row has their medians and the ratio of these: plait's
time over PyTorch's, so 1 is equal and more is slower. With ``--docs`` the rows join those that
docs/benchmarks/sweep has of this processor, so that a page can be measured in parts. It lists every
row above 1.1 and counts the rest by group.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import processor_pages
from run import duration
from timing import compare

__all__ = ["CASES", "Case", "Row", "main"]

SLOW = 1.1  # times PyTorch's: rows above this stand on the page
SEED = 0

Function = Callable[..., Any]  # of a library and tensors

ROWS = ((1000,), (100_000,), (4_000_000,), (64, 64), (1024, 512), (16, 100_000), (100_000, 16))
TABLES = ((64, 64), (1024, 512), (16, 100_000), (100_000, 16))
IMAGES = ((1, 64, 56, 56), (16, 32, 32, 32), (8, 3, 224, 224), (32, 256, 7, 7))
SQUARES = ((16, 16), (64, 64), (256, 256), (64, 8, 8))


@dataclass(frozen=True)
class Case:
    """An operator and the shapes it is called with.

    Args:
        group: the page's row in the table of counts.
        name: of the operator.
        run: a function of the library and the tensors.
        shapes: one call each; a shape, or a tuple of shapes of several tensors.
        backward: time the derivative too, where the dtype has one.
        kinds: the dtypes that it is timed with.
        values: what the tensors hold: ``normal``, ``positive``, ``definite`` (matrices), or
            ``index`` (the second tensor holds indices into the first one's last dimension).
    """

    group: str
    name: str
    run: Function
    shapes: tuple[Any, ...] = ROWS
    backward: bool = True
    kinds: tuple[str, ...] = ("float32",)
    values: str = "normal"


@dataclass
class Row:
    """What was measured of a call."""

    group: str
    name: str
    shape: str
    kind: str
    direction: str
    threads: int
    plait: float
    torch: float
    ratio: float


NUMBERS = ("float32", "bfloat16", "float16", "int64")
ALL = (*NUMBERS, "bool")
FLOATS = ("float32", "bfloat16", "float16")


def pairs(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    """Return pairs of equal shapes."""
    return tuple((shape, shape) for shape in shapes)


def F(library: Any) -> Any:  # noqa: N802 - the usual name of the module
    """Return ``nn.functional``."""
    return library.nn.functional


def elementwise() -> Iterator[Case]:
    """Yield operators that change each element by itself."""
    two: dict[str, Function] = {
        "add": lambda L, x, y: x + y,
        "mul": lambda L, x, y: x * y,
        "maximum": lambda L, x, y: L.maximum(x, y),
        "lt": lambda L, x, y: x < y,
        "where": lambda L, x, y: L.where(x > 0, x, y),
        "lerp": lambda L, x, y: L.lerp(x, y, 0.3),
    }
    for name, run in two.items():
        kinds = FLOATS if name == "lerp" else NUMBERS
        yield Case("elementwise", name, run, pairs(*ROWS), name != "lt", kinds)
    one: dict[str, Function] = {
        "add scalar": lambda L, x: x + 2,
        "neg": lambda L, x: -x,
        "abs": lambda L, x: x.abs(),
        "clamp": lambda L, x: x.clamp(-1, 1),
        "pow 2": lambda L, x: x**2,
        "pow 3": lambda L, x: x**3,
        "sign": lambda L, x: x.sign(),
    }
    for name, run in one.items():
        yield Case("elementwise", name, run, kinds=NUMBERS)
    floating: dict[str, Function] = {
        "exp": lambda L, x: x.exp(),
        "tanh": lambda L, x: x.tanh(),
        "sigmoid": lambda L, x: x.sigmoid(),
        "gelu": lambda L, x: F(L).gelu(x),
        "silu": lambda L, x: F(L).silu(x),
        "softplus": lambda L, x: F(L).softplus(x),
        "erf": lambda L, x: x.erf(),
        "sin": lambda L, x: x.sin(),
        "round": lambda L, x: x.round(),
        "reciprocal": lambda L, x: x.reciprocal(),
        "isnan": lambda L, x: x.isnan(),
    }
    for name, run in floating.items():
        yield Case("elementwise", name, run, backward=name != "isnan", kinds=FLOATS)
    positive: dict[str, Function] = {
        "log": lambda L, x: x.log(),
        "sqrt": lambda L, x: x.sqrt(),
        "rsqrt": lambda L, x: x.rsqrt(),
        "pow 0.7": lambda L, x: x**0.7,
        "pow tensor": lambda L, x: x**x,
        "lgamma": lambda L, x: x.lgamma(),
    }
    for name, run in positive.items():
        yield Case("elementwise", name, run, kinds=("float32",), values="positive")
    rows = (((1024, 512), (512,)), ((1024, 512), (1024, 1)), ((64, 1, 64), (1, 64, 64)))
    yield Case("elementwise", "add broadcast", lambda L, x, y: x + y, rows, True, NUMBERS)
    yield Case("elementwise", "mul transposed", lambda L, x, y: x * y.t(), pairs((1024, 1024)))


def in_place() -> Iterator[Case]:
    """Yield operators that write to their tensor, take a number, or convert; forward only."""
    numbers: dict[str, Function] = {
        "add_ number": lambda L, x: x.add_(1),
        "sub_ number": lambda L, x: x.sub_(1),
        "mul_ number": lambda L, x: x.mul_(1),
        "clamp_": lambda L, x: x.clamp_(-1, 1),
        "neg_": lambda L, x: x.neg_(),
        "fill_": lambda L, x: x.fill_(3),
        "zero_": lambda L, x: x.zero_(),
        "gt number": lambda L, x: x > 0,
        "masked_fill": lambda L, x: x.masked_fill(x > 0, 2),
        "remainder number": lambda L, x: x % 7,
        "to float64": lambda L, x: x.double(),
        "to bfloat16": lambda L, x: x.to(L.bfloat16),
        "to bool": lambda L, x: x.bool(),
    }
    for name, run in numbers.items():
        yield Case("in place", name, run, backward=False, kinds=NUMBERS)
    floats: dict[str, Function] = {
        "lerp_ number": lambda L, x: x.lerp_(x, 0.3),
        "erfc": lambda L, x: x.erfc(),
        "erfinv": lambda L, x: x.erfinv(),
        "elu": lambda L, x: F(L).elu(x),
        "pow 1.5": lambda L, x: x**1.5,
    }
    for name, run in floats.items():
        yield Case("in place", name, run, backward=False, kinds=FLOATS)
    two: dict[str, Function] = {
        "add_": lambda L, x, y: x.add_(y),
        "copy_": lambda L, x, y: x.copy_(y),
        "fmod": lambda L, x, y: L.fmod(x, y),
        "floor_divide": lambda L, x, y: x // y,
    }
    for name, run in two.items():
        kinds = FLOATS if name in ("fmod", "floor_divide") else NUMBERS
        yield Case("in place", name, run, pairs(*ROWS), False, kinds)
    bools: dict[str, Function] = {
        "not": lambda L, x: ~x,
        "to float32": lambda L, x: x.float(),
        "to int64": lambda L, x: x.long(),
    }
    for name, run in bools.items():
        yield Case("in place", name, run, backward=False, kinds=("bool",))
    vectors = tuple(((n,), (n,)) for n in (1000, 100_000, 4_000_000))
    yield Case("in place", "dot", lambda L, x, y: x.dot(y), vectors, False, ("float32", "int64"))


def reductions() -> Iterator[Case]:
    """Yield sums and what else makes one value of many."""
    many: dict[str, Function] = {
        "sum": lambda L, x: x.sum(),
        "sum rows": lambda L, x: x.sum(-1),
        "sum columns": lambda L, x: x.sum(0),
        "any": lambda L, x: x.any(),
        "all rows": lambda L, x: x.all(-1),
        "argmax rows": lambda L, x: x.argmax(-1),
        "max rows": lambda L, x: x.max(-1)[0],
        "amin columns": lambda L, x: x.amin(0),
        "cumsum rows": lambda L, x: x.cumsum(-1),
        "cumsum columns": lambda L, x: x.cumsum(0),
    }
    plain = ("any", "all rows", "argmax rows")
    for name, run in many.items():
        kinds = ALL if name.startswith(("sum", "any", "all")) else NUMBERS
        yield Case("reductions", name, run, TABLES, name not in plain, kinds)
    floating: dict[str, Function] = {
        "mean rows": lambda L, x: x.mean(-1),
        "mean columns": lambda L, x: x.mean(0),
        "var rows": lambda L, x: x.var(-1),
        "std columns": lambda L, x: x.std(0),
        "norm": lambda L, x: x.norm(),
        "norm rows": lambda L, x: x.norm(dim=-1),
        "norm 1 columns": lambda L, x: L.linalg.vector_norm(x, 1, dim=0),
        "norm inf rows": lambda L, x: L.linalg.vector_norm(x, float("inf"), dim=-1),
        "prod rows": lambda L, x: x.prod(-1),
        "cumprod rows": lambda L, x: x.cumprod(-1),
        "logsumexp rows": lambda L, x: x.logsumexp(-1),
        "logsumexp columns": lambda L, x: x.logsumexp(0),
        "softmax rows": lambda L, x: x.softmax(-1),
        "softmax columns": lambda L, x: x.softmax(0),
        "log_softmax rows": lambda L, x: x.log_softmax(-1),
        "layer_norm": lambda L, x: F(L).layer_norm(x, x.shape[-1:]),
        "normalize": lambda L, x: F(L).normalize(x, dim=-1),
    }
    for name, run in floating.items():
        kinds = ("float32",) if "prod" in name else FLOATS[:2]
        yield Case("reductions", name, run, TABLES, kinds=kinds)


def ordering() -> Iterator[Case]:
    """Yield what sorts, searches and counts."""
    named: dict[str, Function] = {
        "sort rows": lambda L, x: x.sort(-1)[0],
        "sort columns": lambda L, x: x.sort(0)[0],
        "argsort": lambda L, x: x.argsort(-1),
        "topk": lambda L, x: x.topk(8, -1)[0],
        "median rows": lambda L, x: x.median(-1)[0],
        "kthvalue": lambda L, x: x.kthvalue(5, -1)[0],
    }
    for name, run in named.items():
        yield Case("ordering", name, run, TABLES, name != "argsort", ("float32", "int64"))
    plain: dict[str, Function] = {
        "unique": lambda L, x: x.unique(),
        "nonzero": lambda L, x: (x > 0).nonzero(),
        "masked_select": lambda L, x: x.masked_select(x > 0),
    }
    for name, run in plain.items():
        yield Case("ordering", name, run, ROWS, False, ("float32", "int64"))
    yield Case(
        "ordering",
        "searchsorted",
        lambda L, x, y: L.searchsorted(x.sort()[0], y),
        pairs((1000,), (100_000,)),
        False,
    )
    yield Case("ordering", "bincount", lambda L, x, i: L.bincount(i.flatten()), ROWS, False,
               values="index")  # fmt: skip


def movement() -> Iterator[Case]:
    """Yield what moves elements."""
    named: dict[str, Function] = {
        "flip": lambda L, x: x.flip(-1),
        "flip first": lambda L, x: x.flip(0),
        "roll": lambda L, x: x.roll(3, -1),
        "roll first": lambda L, x: x.roll(3, 0),
        "transpose": lambda L, x: x.t().contiguous(),
        "cat rows": lambda L, x: L.cat([x, x, x], 0),
        "cat columns": lambda L, x: L.cat([x, x, x], 1),
        "stack": lambda L, x: L.stack([x, x], -1),
        "repeat": lambda L, x: x.repeat(2, 3),
        "repeat_interleave": lambda L, x: x.repeat_interleave(3, 0),
        "pad": lambda L, x: F(L).pad(x, (1, 2, 3, 4)),
        "tril": lambda L, x: x.tril(),
        "slice": lambda L, x: x[1:, ::2].contiguous(),
        "clone": lambda L, x: x.clone(),
        "masked_fill": lambda L, x: x.masked_fill(x > 0, 0),
    }
    for name, run in named.items():
        yield Case("movement", name, run, TABLES, kinds=("float32", "bfloat16", "int64", "bool"))
    indexed: dict[str, Function] = {
        "gather": lambda L, x, i: x.gather(-1, i),
        "scatter_add": lambda L, x, i: x.scatter_add(-1, i, x),
        "index_select": lambda L, x, i: x.index_select(-1, i[0]),
        "index rows": lambda L, x, i: x[i[0, :512] % x.shape[0]],
        "index_add": lambda L, x, i: x.index_add(-1, i[0], x),
        "index_put": lambda L, x, i: x.index_put((i[:, 0] % x.shape[0],), x),
        "index_put add": lambda L, x, i: x.index_put((i[:, 0] % x.shape[0],), x, accumulate=True),
        "take_along_dim": lambda L, x, i: L.take_along_dim(x, i, -1),
        "embedding": lambda L, x, i: F(L).embedding(i[:, :8] % x.shape[0], x),
    }
    for name, run in indexed.items():
        yield Case("movement", name, run, TABLES, values="index")


def products() -> Iterator[Case]:
    """Yield products and distances of matrices."""
    sides = ((16, 16), (128, 128), (512, 512), (8, 1024), (1024, 8))
    named: dict[str, Function] = {
        "matmul turned": lambda L, x, y: x @ y.t(),
        "einsum": lambda L, x, y: L.einsum("ij,kj->ik", x, y),
        "cdist": lambda L, x, y: L.cdist(x, y),
        "outer": lambda L, x, y: L.outer(x[0], y[0]),
        "matrix vector": lambda L, x, y: x @ y[0],
        "linear": lambda L, x, y: F(L).linear(x, y),
        "cosine_similarity": lambda L, x, y: F(L).cosine_similarity(x, y, -1),
    }
    for name, run in named.items():
        yield Case("products", name, run, pairs(*sides))
    yield Case("products", "bmm", lambda L, x, y: x @ y.mT,
               pairs((64, 16, 16), (96, 64, 32), (12, 128, 128)))  # fmt: skip
    attention = pairs((2, 4, 64, 32), (1, 8, 256, 64))
    yield Case("products", "attention",
               lambda L, x, y: F(L).scaled_dot_product_attention(x, y, y), attention)  # fmt: skip


def images() -> Iterator[Case]:
    """Yield convolutions, pooling and what resizes."""
    named: dict[str, Function] = {
        "max_pool2d": lambda L, x: F(L).max_pool2d(x, 2),
        "max_pool2d 3 stride 2": lambda L, x: F(L).max_pool2d(x, 3, 2, 1),
        "avg_pool2d": lambda L, x: F(L).avg_pool2d(x, 2),
        "adaptive_avg_pool2d": lambda L, x: F(L).adaptive_avg_pool2d(x, 3),
        "interpolate nearest": lambda L, x: F(L).interpolate(x, scale_factor=2),
        "interpolate bilinear": lambda L, x: F(L).interpolate(x, scale_factor=2, mode="bilinear"),
        "interpolate bicubic": lambda L, x: F(L).interpolate(x, size=40, mode="bicubic"),
        "batch_norm": lambda L, x: F(L).batch_norm(x, None, None, training=True),
        "group_norm": lambda L, x: F(L).group_norm(x, 1),
        "pad reflect": lambda L, x: F(L).pad(x, (1, 1, 1, 1), mode="reflect"),
        "unfold": lambda L, x: F(L).unfold(x, 3, padding=1),
        "pixel_unshuffle": lambda L, x: F(L).pixel_unshuffle(x[..., :6, :6], 2),
    }
    for name, run in named.items():
        yield Case("images", name, run, IMAGES)
    convolutions: tuple[tuple[str, Function, tuple[Any, ...]], ...] = (
        ("conv1d", lambda L, x, w: F(L).conv1d(x, w, padding=1),
         (((8, 32, 256), (64, 32, 3)), ((1, 1, 16000), (64, 1, 80)), ((16, 64, 50), (64, 64, 5)))),
        ("conv2d", lambda L, x, w: F(L).conv2d(x, w, padding=1),
         (((1, 64, 28, 28), (64, 64, 3, 3)), ((8, 3, 64, 64), (32, 3, 3, 3)),
          ((16, 32, 16, 16), (64, 32, 1, 1)), ((4, 16, 32, 32), (32, 16, 5, 5)))),
        ("conv2d stride 2", lambda L, x, w: F(L).conv2d(x, w, stride=2, padding=1),
         (((1, 64, 56, 56), (64, 64, 3, 3)), ((8, 3, 64, 64), (32, 3, 3, 3)))),
        ("conv2d groups", lambda L, x, w: F(L).conv2d(x, w, padding=1, groups=4),
         (((4, 64, 28, 28), (64, 16, 3, 3)), ((16, 32, 16, 16), (64, 8, 3, 3)))),
        ("conv2d depthwise", lambda L, x, w: F(L).conv2d(x, w, padding=1, groups=x.shape[1]),
         (((4, 64, 56, 56), (64, 1, 3, 3)), ((1, 256, 14, 14), (256, 1, 3, 3)))),
        ("conv2d dilated", lambda L, x, w: F(L).conv2d(x, w, padding=2, dilation=2),
         (((2, 32, 32, 32), (32, 32, 3, 3)),)),
        ("conv3d", lambda L, x, w: F(L).conv3d(x, w, padding=1),
         (((1, 8, 16, 32, 32), (16, 8, 3, 3, 3)), ((2, 3, 8, 56, 56), (16, 3, 3, 3, 3)))),
        ("conv_transpose2d", lambda L, x, w: F(L).conv_transpose2d(x, w, stride=2, padding=1),
         (((4, 64, 14, 14), (64, 32, 4, 4)), ((1, 128, 7, 7), (128, 64, 3, 3)))),
        ("conv_transpose1d", lambda L, x, w: F(L).conv_transpose1d(x, w, stride=4),
         (((4, 64, 100), (64, 32, 8)),)),
    )  # fmt: skip
    for name, run, shapes in convolutions:
        yield Case("convolutions", name, run, shapes)


def decompositions() -> Iterator[Case]:
    """Yield linear algebra and Fourier transforms."""
    definite: dict[str, Function] = {
        "cholesky": lambda L, x: L.linalg.cholesky(x),
        "inv": lambda L, x: L.linalg.inv(x),
        "solve": lambda L, x: L.linalg.solve(x, x[..., :4]),
        "det": lambda L, x: L.linalg.slogdet(x)[1],
        "eigh": lambda L, x: L.linalg.eigh(x)[0],
        "svdvals": lambda L, x: L.linalg.svdvals(x),
        "svd": lambda L, x: L.linalg.svd(x, full_matrices=False)[1],
        "qr": lambda L, x: L.linalg.qr(x)[1],
        "matrix_exp": lambda L, x: L.linalg.matrix_exp(x * 0.01),
        "lstsq": lambda L, x: L.linalg.lstsq(x, x[..., :4])[0],
    }
    for name, run in definite.items():
        yield Case("linear algebra", name, run, SQUARES, name != "lstsq", values="definite")
    yield Case("linear algebra", "eigvals", lambda L, x: L.linalg.eigvals(x).real,
               SQUARES[:3], False, values="definite")  # fmt: skip
    signals = ((1024,), (64, 1000), (16, 4096), (1, 100_000))
    fourier: dict[str, Function] = {
        "rfft": lambda L, x: L.fft.rfft(x).abs(),
        "fft": lambda L, x: L.fft.fft(x).real,
        "irfft": lambda L, x: L.fft.irfft(x),
        "fft2": lambda L, x: L.fft.fft2(x).real,
    }
    for name, run in fourier.items():
        shapes = ((64, 64), (8, 128, 128)) if name == "fft2" else signals
        yield Case("fourier", name, run, shapes)
    yield Case("fourier", "stft", lambda L, x: L.stft(
        x, 512, 128, window=L.hann_window(512), return_complex=True).abs(),
        ((16000,), (4, 16000)))  # fmt: skip


def losses() -> Iterator[Case]:
    """Yield losses, random numbers and recurrent layers."""
    two: dict[str, Function] = {
        "mse_loss": lambda L, x, y: F(L).mse_loss(x, y),
        "smooth_l1_loss": lambda L, x, y: F(L).smooth_l1_loss(x, y),
        "binary_cross_entropy": lambda L, x, y: F(L).binary_cross_entropy_with_logits(
            x, y.detach().sigmoid()
        ),
        "kl_div": lambda L, x, y: F(L).kl_div(x, y.softmax(-1), reduction="batchmean"),
    }
    for name, run in two.items():
        yield Case("losses", name, run, pairs(*TABLES))
    yield Case("losses", "cross_entropy",
               lambda L, x, i: F(L).cross_entropy(x, i[:, 0]), TABLES, values="index")  # fmt: skip
    random: dict[str, Function] = {
        "dropout": lambda L, x: F(L).dropout(x, 0.5),
        "rand": lambda L, x: L.rand(x.shape),
        "randn": lambda L, x: L.randn(x.shape),
        "bernoulli": lambda L, x: L.bernoulli(x.detach().sigmoid()),
    }
    for name, run in random.items():
        yield Case("random numbers", name, run, TABLES, name == "dropout")


CASES = (
    *elementwise(), *in_place(), *reductions(), *ordering(), *movement(), *products(), *images(),
    *decompositions(), *losses(),
)  # fmt: skip


def arrays(case: Case, shape: Any, kind: str) -> list[np.ndarray]:
    """Return what the tensors of a call hold."""
    generator = np.random.default_rng(SEED)
    shapes = shape if isinstance(shape[0], tuple) else (shape,)
    result = []
    for each in shapes:
        x = generator.standard_normal(each)
        if case.values == "positive":
            x = np.abs(x) + 0.1
        if case.values == "definite":
            x = x @ np.swapaxes(x, -1, -2) + np.eye(each[-1]) * each[-1]
        if kind == "int64":
            x = np.round(x * 100)
        result.append(x > 0 if kind == "bool" else x.astype("int64" if kind == "int64" else "f4"))
    if case.values == "index":
        result.append(generator.integers(0, shapes[0][-1], shapes[0]))
    return result


def tensors(library: Any, case: Case, shape: Any, kind: str, backward: bool) -> list[Any]:
    """Return the tensors of a call."""
    result = []
    for array in arrays(case, shape, kind):
        x = library.tensor(array)
        if array.dtype == np.float32:
            x = x.to(getattr(library, kind))
            x.requires_grad_(backward)
        result.append(x)
    return result


def calls(library: Any, case: Case, shape: Any, kind: str, backward: bool) -> Callable[[], Any]:
    """Return the call that is timed: the operator, or its derivative by all of its tensors."""
    given = tensors(library, case, shape, kind, backward)
    if not backward:

        def forward() -> Any:
            with library.no_grad():
                return case.run(library, *given)

        return forward
    result = case.run(library, *given)
    gradient = library.ones_like(result)
    leaves = [x for x in given if x.requires_grad]

    def derivative() -> Any:
        return library.autograd.grad(result, leaves, gradient, retain_graph=True, allow_unused=True)

    return derivative


def rows(flags: argparse.Namespace, plait: Any, torch: Any) -> Iterator[Row]:
    """Yield what is measured."""
    for case in CASES:
        if flags.only and not any(word in case.name for word in flags.only):
            continue
        if flags.groups and case.group not in flags.groups:
            continue
        for kind in (k for k in case.kinds if k in flags.kinds):
            for shape in case.shapes:
                for backward in (False, True):
                    if backward and not (case.backward and kind == "float32"):
                        continue
                    label = [case.group, case.name, str(shape).replace(" ", ""), kind]
                    direction = "backward" if backward else "forward"
                    try:
                        sides = [calls(L, case, shape, kind, backward) for L in (plait, torch)]
                        found = compare((case.name, *sides, None), flags.seconds)
                    except Exception as error:  # the other rows are still wanted
                        print(*label, direction, type(error).__name__, error, file=sys.stderr)
                        continue
                    times = (float(f"{t:.4g}") for t in (found.plait, found.peer, found.ratio))
                    yield Row(*label, direction, flags.threads, *times)


PAGE = """# The long tail: operators beside PyTorch

`python benchmarks/sweep.py --docs` wrote this page on {date} on this processor: {machine}. plait
and PyTorch {version} ran in one process in turns; a ratio is plait's median over PyTorch's: less
than 1 is faster. Times of one machine say little of another one: run it on yours.

{summary}

The rows above {limit} follow below; a dtype or a number of threads that the table lacks is not
measured here.

| group | dtype | threads | calls | geometric mean | above {limit} | slowest |
|---|---|---|---|---|---|---|
{groups}

## Slower than PyTorch

| operator | shape | dtype | direction | threads | plait | PyTorch | ratio |
|---|---|---|---|---|---|---|---|
{rows}
"""


def part_order(part: tuple[int, str]) -> tuple[int, int]:
    """Return the place of a number of threads and a dtype among the parts of a page."""
    return part[0], ALL.index(part[1])


def summary(found: list[Row]) -> str:
    """Return a sentence for each dtype and number of threads."""
    sentences = []
    for threads, kind in sorted({(row.threads, row.kind) for row in found}, key=part_order):
        ratios = [row.ratio for row in found if (row.threads, row.kind) == (threads, kind)]
        mean, slow = statistics.geometric_mean(ratios), sum(ratio > SLOW for ratio in ratios)
        sentences.append(
            f"{kind} with {threads} thread{'s' * (threads > 1)}: the geometric mean of "
            f"{len(ratios)} ratios is {mean:.2f}, and {slow} of them are above {SLOW}."
        )
    return " ".join(sentences)


def page(found: list[Row], date: str, version: str) -> str:
    """Return the page of these rows."""

    def line(*cells: Any) -> str:
        return "| " + " | ".join(str(cell) for cell in cells) + " |"

    groups = []
    parts = dict.fromkeys((row.threads, row.kind, row.group) for row in found)
    for threads, kind, name in sorted(parts, key=lambda part: part_order(part[:2])):
        rows_of = [
            row for row in found if (row.threads, row.kind, row.group) == (threads, kind, name)
        ]
        of = [row.ratio for row in rows_of]
        slow = sum(ratio > SLOW for ratio in of)
        mean = statistics.geometric_mean(of)
        groups.append(line(name, kind, threads, len(of), f"{mean:.2f}", slow, f"{max(of):.2f}"))
    slower = sorted((row for row in found if row.ratio > SLOW), key=lambda row: -row.ratio)
    return PAGE.format(
        date=date,
        machine=processor_pages.this_processor().title,
        version=version,
        summary=summary(found),
        limit=SLOW,
        groups="\n".join(groups),
        rows="\n".join(
            line(r.name, r.shape, r.kind, r.direction, r.threads, duration(r.plait).strip(),
                 duration(r.torch).strip(), f"{r.ratio:.2f}")
            for r in slower
        ),
    )  # fmt: skip


def joined(old: list[Row], new: list[Row]) -> list[Row]:
    """Return all rows in the order of CASES; new ones replace those of the same call."""
    known = {(r.name, r.shape, r.kind, r.direction, r.threads): r for r in (*old, *new)}
    order = {case.name: i for i, case in enumerate(CASES)}
    known_names = [row for row in known.values() if row.name in order]
    return sorted(known_names, key=lambda row: (row.threads, order[row.name]))


def write_docs(new: list[Row], version: str) -> None:
    """Join the rows with those that are stored; write the page and the index."""
    date = datetime.date.today().isoformat()
    old = [Row(*values) for values in processor_pages.read("sweep").get("rows", [])]
    found = joined(old, new)
    values = {"date": date, "rows": [list(astuple(row)) for row in found]}
    processor_pages.write("sweep", page(found, date, version), summary(found), values)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT")
    groups = sorted({case.group for case in CASES})
    parser.add_argument("--groups", nargs="*", default=[], choices=groups)
    parser.add_argument("--kinds", nargs="*", default=["float32"], choices=ALL)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.1, help="for a call, about")
    parser.add_argument("--docs", action="store_true", help="add the rows to docs/benchmarks/sweep")
    flags = parser.parse_args(arguments)

    import torch

    import plait

    gc.freeze()  # collections between turns look at the turns' own objects
    for library in (plait, torch):
        library.set_num_threads(flags.threads)
    found = []
    for row in rows(flags, plait, torch):
        found.append(row)
        mark = "  slower" if row.ratio > SLOW else ""
        print(
            f"{row.ratio:6.2f} {row.name} {row.shape} {row.kind} {row.direction}{mark}", flush=True
        )
    if flags.docs:
        write_docs(found, torch.__version__.partition("+")[0])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
