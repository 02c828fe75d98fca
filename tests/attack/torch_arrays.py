"""Random configurations of reductions, orders, indices, matrices, joins, views and promotion."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import torch
from torch_operands import (
    COMPLEX,
    FLOATS,
    HALVES,
    INTS,
    Call,
    any_dtype,
    drawn,
    laid,
    maybe,
    shape_of,
    tensor,
)


def dims_of(rng: random.Random, n: int) -> Any:
    """None, one dimension, or some of them."""
    if n == 0 or rng.random() < 0.2:
        return None
    selection = [d - rng.choice([0, n]) for d in rng.sample(range(n), rng.randint(1, n))]
    return rng.choice([selection[0], selection, tuple(selection)])


def distinct(rng: random.Random, shape: list[int], dtype: Any) -> Any:
    """No two elements are the same, so there is one right order."""
    x = torch.randperm(max(1, torch.Size(shape).numel()))[: torch.Size(shape).numel()]
    result = (x - x.numel() // 2).reshape(shape).to(dtype)
    return result.mT.contiguous().mT if result.dim() > 1 and rng.random() < 0.5 else result


def with_nan(rng: random.Random, shape: list[int]) -> Any:
    x = drawn(shape, rng.choice(FLOATS))
    return torch.where(torch.rand(shape) < 0.2, float("nan"), x).requires_grad_()


def reduction(rng: random.Random) -> Call:
    names = ["sum", "mean", "prod", "amax", "amin", "any", "all", "nansum", "nanmean", "logsumexp"]
    name = rng.choice([*names, "count_nonzero", "max", "min", "argmax", "argmin", "aminmax"])
    shape = shape_of(rng)
    dims, keep = dims_of(rng, len(shape)), {"keepdim": rng.random() < 0.5}
    one = dims if isinstance(dims, int) else rng.randrange(len(shape)) if shape else 0
    x = tensor(rng, shape, any_dtype(rng))
    result = rng.choice([torch.float64, torch.float32, torch.int64, torch.float16])
    into = {"dtype": result} if rng.random() < 0.2 else {}
    if name in ("nansum", "nanmean"):
        x = with_nan(rng, shape)
    if name in ("sum", "nansum", "mean", "nanmean"):
        return Call(name, [x], into) if dims is None else Call(name, [x, dims], {**into, **keep})
    if name == "prod":
        along = Call(name, [x, one], {**into, **keep})
        return along if rng.random() < 0.6 else Call(name, [x], into)
    if name in ("max", "min", "argmax", "argmin"):
        x = distinct(rng, shape, rng.choice([*FLOATS, torch.int64, torch.int32]))
        if x.is_floating_point():
            x.requires_grad_()
        return Call(name, [x, one], keep) if rng.random() < 0.7 else Call(name, [x])
    if name == "aminmax":
        return Call(name, [x], {"dim": maybe(rng, 0.7, one), **keep})
    if name == "count_nonzero":
        return Call(name, [x, dims])
    if dims is None:
        return Call(name, [x, []] if name == "logsumexp" else [x])
    return Call(name, [x, dims], keep)


def statistic(rng: random.Random) -> Call:
    name = rng.choice(["std", "var", "std_mean", "var_mean", "vector_norm", "norm", "quantile",
                       "nanquantile", "dist"])  # fmt: skip
    shape = shape_of(rng)
    dims, keep = dims_of(rng, len(shape)), {"keepdim": rng.random() < 0.5}
    x = tensor(rng, shape, rng.choice(FLOATS + HALVES + COMPLEX))
    if name == "dist":
        dtype = rng.choice(FLOATS)
        args = [tensor(rng, shape, dtype), tensor(rng, shape, dtype), rng.choice([0, 1, 2, 3.5])]
        return Call(name, args)
    if name in ("std", "var", "std_mean", "var_mean"):
        keep["correction"] = rng.choice([0, 1, 2, 1.5])
        return Call(name, [x], {"dim": dims, **keep})
    if name in ("vector_norm", "norm"):
        p = rng.choice([0, 1, 2, 3, 0.5, -1, float("inf"), float("-inf")])
        return Call("linalg.vector_norm" if name == "vector_norm" else "norm", [x, p, dims], keep)
    floats = tensor(rng, shape, layout=False)  # no ties
    x = with_nan(rng, shape) if name == "nanquantile" else floats
    one = dims if isinstance(dims, int) else rng.randrange(len(shape)) if shape else 0
    q = rng.choice([0.3, 1.0, torch.rand(3, dtype=x.dtype), torch.rand((), dtype=x.dtype)])
    keep["interpolation"] = rng.choice(["linear", "lower", "higher", "midpoint", "nearest"])
    return Call(name, [x, q, maybe(rng, 0.7, one)], keep)


def order(rng: random.Random) -> Call:
    name = rng.choice(["sort", "argsort", "topk", "kthvalue", "median", "nanmedian", "mode",
                       "msort", "unique", "unique_consecutive"])  # fmt: skip
    shape = shape_of(rng, 1, 3)
    dim = rng.randrange(-len(shape), len(shape))
    x = distinct(rng, shape, rng.choice([*FLOATS, torch.int64, torch.int32]))
    if x.is_floating_point() and rng.random() < 0.7:
        x.requires_grad_()
    repeated = tensor(rng, shape, rng.choice(FLOATS + INTS), grad=False).round()
    if name in ("sort", "argsort"):
        options = {"dim": dim, "descending": rng.random() < 0.5, "stable": True}
        return Call(name, [repeated if rng.random() < 0.5 else x], options)
    n = shape[dim]
    if name == "topk":
        return Call(name, [x, rng.randint(0, n), dim, rng.random() < 0.5, True])
    if name == "kthvalue":
        return Call(name, [x, rng.randint(1, max(n, 1)), dim], {"keepdim": rng.random() < 0.5})
    if name in ("median", "nanmedian"):
        return Call(name, [x, dim] if rng.random() < 0.7 else [x])
    if name == "mode":  # any of the places is right
        return Call(lambda m, x: m.mode(x, dim)[0], [repeated], {}, "mode")
    if name == "msort":
        return Call(name, [x])
    options = {"return_inverse": rng.random() < 0.5, "return_counts": rng.random() < 0.5}
    return Call(name, [repeated], {**options, "dim": maybe(rng, 0.5, dim)})


def counting(rng: random.Random) -> Call:
    """Places in sorted edges, and counts."""
    name = rng.choice(["searchsorted", "bucketize", "isin", "bincount", "histc", "one_hot"])
    shape = shape_of(rng, 0, 3)
    if name in ("searchsorted", "bucketize"):
        edges = drawn([rng.randint(0, 5)], torch.float32).round().sort()[0]
        values = laid(rng, drawn(shape, torch.float32).round())
        options = {"right": rng.random() < 0.5, "out_int32": rng.random() < 0.3}
        args = [edges, values] if name == "searchsorted" else [values, edges]
        return Call(name, args, options)
    x = tensor(rng, shape, rng.choice(FLOATS), grad=False)
    if name == "isin":
        args = [x.round(), drawn([4], x.dtype).round()]
        return Call(name, args, {"invert": rng.random() < 0.5})
    if name == "bincount":
        few = torch.randint(0, 5, [rng.randint(0, 9)])
        weights = maybe(rng, 0.5, torch.rand(few.shape, dtype=rng.choice(FLOATS)))
        return Call(name, [few, weights, rng.choice([0, 8])])
    if name == "histc":
        low, high = rng.choice([(0, 0), (-1, 1), (0, 2)])
        return Call(name, [x], {"bins": rng.randint(1, 7), "min": low, "max": high})
    return Call("nn.functional.one_hot", [torch.randint(0, 4, shape), rng.choice([-1, 4, 6])])


def key_of(rng: random.Random, shape: list[int]) -> Any:
    """An index of anything that indexes."""
    keys: list[Any] = []
    d, spread = 0, rng.choice([[], [2], [3, 2], [1]])
    while d < len(shape):
        n = shape[d]
        kind = rng.choice(["int", "slice", "slice", "tensor", "mask", "none", "all", "bool"])
        if kind == "none":
            keys.append(None)
            continue
        if kind == "bool" and rng.random() < 0.2:
            keys.append(rng.random() < 0.8)
            continue
        if kind == "int" and n:
            keys.append(rng.randrange(-n, n))
        elif kind == "tensor" and n:
            ids = torch.randint(-n, n, spread)
            keys.append(rng.choice([ids, ids.tolist() if spread else ids]))
        elif kind == "mask":
            keys.append(torch.rand(n) < 0.5)
        else:
            ends = [maybe(rng, 0.6, rng.randint(-n - 1, n + 1)) for _ in range(2)]
            keys.append(slice(*ends, rng.choice([None, 1, 2, 3])))
        d += 1
        if rng.random() < 0.15:
            break
    if rng.random() < 0.2:
        keys.insert(rng.randint(d and len(keys), len(keys)), ...)
    # a list of lists alone is the tuple of them for PyTorch
    single = len(keys) == 1 and not isinstance(keys[0], list) and rng.random() < 0.5
    return keys[0] if single else tuple(keys)


def keyed(rng: random.Random) -> Call:
    """Reading and writing by keys."""
    shape = shape_of(rng, 1, 4)
    dtype = any_dtype(rng)
    x, key = tensor(rng, shape, dtype), key_of(rng, shape)
    if rng.random() < 0.5:
        return Call(lambda m, x, key: x[key], [x, key], {}, "getitem")
    value: Any = rng.choice([2, True, -1.5, None])
    if dtype == torch.uint8 and value == -1.5:
        value = 1
    if value is None:
        try:
            size = list(x.detach()[key].shape)
        except Exception:
            size = []
        size = size[rng.randint(0, len(size)) :]
        value = tensor(
            rng, [rng.choice([n, n, 1]) for n in size], rng.choice([dtype, torch.float32])
        )

    def write(m: Any, x: Any, key: Any, value: Any) -> Any:
        x = x.clone()
        x[key] = value
        return x

    repeats = any(
        isinstance(k, (list, torch.Tensor)) for k in (key if isinstance(key, tuple) else [key])
    )
    if repeats and isinstance(value, torch.Tensor):  # which of repeated places wins is not told
        value = 3
    return Call(write, [x, key, value], {}, "setitem")


def gathering(rng: random.Random) -> Call:
    name = rng.choice(["gather", "scatter", "scatter_add", "scatter_reduce", "index_select",
                       "index_add", "index_copy", "index_fill", "index_reduce",
                       "take_along_dim"])  # fmt: skip
    shape = shape_of(rng, 1, 3, "filled")
    dim = rng.randrange(-len(shape), len(shape))
    dtype = rng.choice([*FLOATS, torch.float16, torch.int64, torch.uint8])
    x, n = tensor(rng, shape, dtype), shape[dim]
    size = [rng.randint(1, k) for k in shape]
    if name in ("gather", "take_along_dim"):
        size = size if name == "gather" else list(shape)
        size[dim] = rng.randint(0, 4)
        ids = torch.randint(0, n, size)
        return Call(name, [x, dim, ids] if name == "gather" else [x, ids, dim])
    if name.startswith("scatter"):
        # scatter: places that do not repeat, as any of their sources may win
        ids = torch.rand(size).argsort(dim) if name == "scatter" else torch.randint(0, n, size)
        source = tensor(rng, size, dtype)
        if name != "scatter_reduce":
            return Call(name, [x, dim, ids, source])
        options = {"include_self": rng.random() < 0.5}
        reduce = rng.choice(["sum", "prod", "mean", "amax", "amin"])
        return Call(name, [x, dim, ids, source, reduce], options)
    ids = torch.randint(0, n, [rng.randint(0, 4)])
    if name == "index_select":
        return Call(name, [x, dim, ids])
    if name == "index_fill":
        return Call(name, [x, dim, ids, 2])
    if name == "index_copy":
        ids = torch.randperm(n)[: ids.numel()]
    size = list(shape)
    size[dim] = ids.numel()
    args = [x, dim, ids, tensor(rng, size, dtype)]
    if name == "index_reduce":
        args.append(rng.choice(["prod", "mean", "amax", "amin"]))
    return Call(name, args, {"alpha": 2} if name == "index_add" and rng.random() < 0.5 else {})


def masks(rng: random.Random) -> Call:
    """Masks, and places counted over all dimensions."""
    name = rng.choice(["take", "put", "index_put", "masked_fill", "masked_select",
                       "masked_scatter", "where"])  # fmt: skip
    shape = shape_of(rng, 1, 3, "filled")
    dtype = rng.choice([*FLOATS, torch.float16, torch.int64, torch.uint8])
    x, total, many = tensor(rng, shape, dtype), torch.Size(shape).numel(), rng.randint(0, 4)
    if name == "take":
        return Call(name, [x, torch.randint(-total, total, shape_of(rng, 0, 2))])
    if name == "put":
        places = torch.randint(0, total, [many])
        return Call(name, [x, places, tensor(rng, [many], dtype), True])
    if name == "index_put":
        places = [torch.randint(0, k, [many]) for k in shape]
        return Call(name, [x, places, tensor(rng, [many], dtype), True])
    mask = torch.rand(shape[rng.randint(0, 1) :]) < 0.5
    if name == "masked_fill":
        return Call(name, [x, mask, rng.choice([2, 0, tensor(rng, [], dtype)])])
    if name == "masked_scatter":
        return Call(name, [x, mask, tensor(rng, [total], dtype)])
    if name == "masked_select":
        return Call(name, [x, mask])
    other: Any = rng.choice([1, 2.5, tensor(rng, shape, any_dtype(rng)), tensor(rng, [], dtype)])
    return Call(name, [mask, x, other])


def regular(rng: random.Random, lead: list[int], n: int, dtype: Any) -> Any:
    """Well-conditioned matrices that require grad, in rows or columns."""
    result = (drawn([*lead, n, n], dtype) + 4 * torch.eye(n, dtype=dtype)).detach()
    return (result if rng.random() < 0.5 else result.mT.contiguous().mT).requires_grad_()


def matrices(rng: random.Random) -> Call:
    name = rng.choice(["solve", "inv", "det", "slogdet", "svdvals", "lstsq", "pinv", "matrix_norm",
                       "cond", "matrix_rank", "matrix_power", "matrix_exp", "solve_triangular",
                       "logdet", "multi_dot", "cross", "vecdot", "tensordot"])  # fmt: skip
    dtype = rng.choice([*FLOATS, *COMPLEX])
    lead, n, k = shape_of(rng, 0, 2), rng.choice([0, 1, 2, 3, 5]), rng.randint(1, 4)
    square, right = regular(rng, lead, n, dtype), tensor(rng, [*lead, n, k], dtype)
    tall = tensor(rng, [*lead, rng.randint(1, 5), rng.randint(1, 5)], dtype, layout=False)
    if name in ("inv", "det", "slogdet", "matrix_exp", "pinv", "cond"):
        return Call(f"linalg.{name}", [square])
    if name == "logdet":
        return Call(name, [square])
    if name == "solve":
        return Call("linalg.solve", [square, right])
    if name == "matrix_power":
        return Call("linalg.matrix_power", [square, rng.randint(-2, 4)])
    if name in ("svdvals", "matrix_rank"):
        return Call(f"linalg.{name}", [tall])
    if name == "matrix_norm":
        kind = rng.choice(["fro", "nuc", 1, -1, 2, -2, float("inf")])
        return Call("linalg.matrix_norm", [tall, kind], {"keepdim": rng.random() < 0.5})
    if name == "lstsq":
        a = torch.cat([square, square * 0.5], -2).detach().requires_grad_()
        b = tensor(rng, [*lead, 2 * n, k], dtype)
        return Call(lambda m, a, b: m.linalg.lstsq(a, b)[0], [a, b], {}, name)
    if name == "solve_triangular":
        options = {"upper": rng.random() < 0.5, "unitriangular": False, "left": True}
        return Call("linalg.solve_triangular", [square, right], options)
    if name == "multi_dot":
        sizes = [rng.randint(1, 4) for _ in range(rng.randint(4, 6))]
        return Call("linalg.multi_dot", [[tensor(rng, [a, b], dtype) for a, b in pairwise(sizes)]])
    if name == "cross":
        return Call("linalg.cross", [tensor(rng, [*lead, 3], dtype), tensor(rng, [3], dtype)])
    if name == "vecdot":
        return Call("linalg.vecdot", [tensor(rng, [*lead, n], dtype), tensor(rng, [n], dtype)])
    a, b = tensor(rng, [2, 3, n], dtype), tensor(rng, [3, n, k], dtype)
    return Call("tensordot", [a, b, rng.choice([1, 0, [[1, 2], [0, 1]]])])


def factors(rng: random.Random) -> Call:
    """Factorizations, of which signs and phases are free."""
    name = rng.choice(["qr", "eigvalsh", "eigh", "cholesky", "cholesky_solve", "lu", "svd"])
    dtype = rng.choice([*FLOATS, *COMPLEX])
    lead, n = shape_of(rng, 0, 2), rng.choice([0, 1, 2, 3, 5])
    square, right = regular(rng, lead, n, dtype), tensor(rng, [*lead, n, 2], dtype)
    tall = drawn([*lead, rng.randint(1, 5), rng.randint(1, 5)], dtype)
    mode = rng.choice(["reduced", "complete", "r"])

    def qr(m: Any, x: Any) -> Any:
        q, r = m.linalg.qr(x, mode)
        return [r.abs(), q @ r if mode != "r" else q]

    def hermitian(m: Any, x: Any, b: Any) -> Any:
        if name == "eigvalsh":
            return m.linalg.eigvalsh(x + x.mH)
        if name == "eigh":
            return m.linalg.eigh(x + x.mH)[0]
        factor = m.linalg.cholesky(x @ x.mH + m.eye(n, dtype=x.dtype))  # well conditioned
        return factor if name == "cholesky" else m.cholesky_solve(b, factor)

    def svd(m: Any, x: Any) -> Any:
        u, s, vh = m.linalg.svd(x, full_matrices=False)
        return [s, (u * s[..., None, :].to(u.dtype)) @ vh]

    if name == "qr":
        return Call(qr, [tall], {}, f"qr[{mode}]")
    if name == "svd":
        return Call(svd, [tall], {}, name)
    if name == "lu":
        return Call("linalg.lu", [square.detach()])
    return Call(hermitian, [square, right], {}, name)


def named_product(rng: random.Random) -> Call:
    names = ["matmul", "bmm", "mv", "dot", "addmm", "outer", "inner", "kron", "baddbmm"]
    name = rng.choice(names)
    dtype = rng.choice([*FLOATS, *COMPLEX, torch.int64])
    b, m, k, n = (rng.choice([0, 1, 2, 5, 9]) for _ in range(4))
    shapes: dict[str, list[list[list[int]]]] = {
        "matmul": [[[k], [m, k], [b, m, k]], [[k], [k, n], [b, k, n]]],
        "bmm": [[[b, m, k]], [[b, k, n]]],
        "mv": [[[m, k]], [[k]]],
        "dot": [[[k]], [[k]]],
        "addmm": [[[n], [m, n], [1, n]], [[m, k]], [[k, n]]],
        "baddbmm": [[[1, n], [b, m, n]], [[b, m, k]], [[b, k, n]]],
        "outer": [[[m]], [[n]]],
        "inner": [[[m, k], [k]], [[n, k]]],
        "kron": [[[m, k]], [[], [b], [b, n]]],
    }
    args = [tensor(rng, rng.choice(each), dtype) for each in shapes[name]]
    options = {"beta": rng.choice([0, 1, 2]), "alpha": 3} if "add" in name else {}
    return Call(name, args, options)


def einsum(rng: random.Random) -> Call:
    """Random letters."""
    letters, size = "abcde", {c: rng.choice([1, 2, 3, 4]) for c in "abcde"}
    dtype = rng.choice(FLOATS + COMPLEX)
    terms = ["".join(rng.choices(letters, k=rng.randint(0, 3))) for _ in range(rng.randint(1, 3))]
    operands = [tensor(rng, [size[c] for c in term], dtype) for term in terms]
    used = sorted(set("".join(terms)))
    equation = ",".join(terms)
    if rng.random() < 0.7:
        equation += "->" + "".join(rng.sample(used, rng.randint(0, len(used))))
    return Call("einsum", [equation, *operands])


def joins(rng: random.Random) -> Call:
    """Joining tensors and parting them."""
    name = rng.choice(["cat", "stack", "hstack", "vstack", "dstack", "block_diag", "meshgrid",
                       "split", "chunk", "tensor_split", "unbind"])  # fmt: skip
    shape = shape_of(rng, 1, 4)
    dim, dtype = rng.randrange(-len(shape), len(shape)), any_dtype(rng)
    x, n = tensor(rng, shape, dtype), shape[dim]
    if name in ("cat", "stack", "hstack", "vstack", "dstack"):
        parts = []
        for _ in range(rng.randint(1, 4)):
            size = list(shape)
            if name == "cat":
                size[dim] = rng.randint(0, 4)
            parts.append(tensor(rng, size, any_dtype(rng) if rng.random() < 0.2 else dtype))
        return Call(name, [parts, dim] if name in ("cat", "stack") else [parts])
    if name == "split":
        first = rng.randint(0, n)
        return Call(name, [x, rng.choice([rng.randint(1, 5), [first, n - first]]), dim])
    if name == "chunk":
        return Call(name, [x, rng.randint(1, 6), dim])
    if name == "tensor_split":
        return Call(name, [x, rng.choice([rng.randint(1, 6), [1, 3]]), dim])
    if name == "unbind":
        return Call(name, [x, dim])
    many = rng.randint(1, 3)
    if name == "meshgrid":
        parts = [tensor(rng, [rng.randint(1, 3)], dtype) for _ in range(many)]
        return Call(name, [*parts], {"indexing": rng.choice(["ij", "xy"])})
    # PyTorch's gradient of an empty part is another one's
    parts = [tensor(rng, shape_of(rng, 0, 2, "filled"), dtype) for _ in range(many)]
    return Call(name, parts)


def rearranging(rng: random.Random) -> Call:
    name = rng.choice(["roll", "flip", "repeat_interleave", "tile", "rot90", "tril", "triu", "diag",
                       "diagonal", "diff", "trapezoid", "movedim", "unfold"])  # fmt: skip
    shape = shape_of(rng, 1, 4)
    dim, other = (rng.randrange(-len(shape), len(shape)) for _ in range(2))
    x, n = tensor(rng, shape, any_dtype(rng)), shape[dim]
    if name == "roll":
        return Call(name, [x, rng.randint(-5, 5), rng.choice([None, dim])])
    if name == "flip":
        return Call(name, [x, rng.sample(range(len(shape)), rng.randint(0, len(shape)))])
    if name == "repeat_interleave":
        times = rng.choice([rng.randint(0, 3), torch.randint(0, 3, [n])])
        return Call(name, [x, times, dim])
    if name == "tile":
        return Call(name, [x, [rng.randint(0, 3) for _ in range(rng.randint(0, 4))]])
    if name == "rot90":
        plane = rng.sample(range(-len(shape), 0), min(2, len(shape)))
        return Call(name, [x, rng.randint(-5, 5), plane])
    if name in ("tril", "triu", "diag"):
        return Call(name, [x, rng.randint(-3, 3)])
    if name == "diagonal":
        return Call(name, [x, rng.randint(-3, 3), dim, other])
    if name == "diff":
        return Call(name, [x, rng.randint(0, 3), dim])
    if name == "trapezoid":
        return Call(name, [tensor(rng, shape, rng.choice(FLOATS))], {"dx": 0.5, "dim": dim})
    if name == "unfold":
        size, step = rng.randint(0, 4), rng.randint(1, 3)
        text = f"unfold[{dim}, {size}, {step}]"
        return Call(lambda m, x: x.unfold(dim, size, step), [x], {}, text)
    return Call(name, [x, dim, other])


VIEWS = {
    "transpose": lambda rng, x: (
        rng.randrange(-x.dim(), x.dim()),
        rng.randrange(-x.dim(), x.dim()),
    ),
    "select": lambda rng, x: (0, rng.randrange(x.shape[0])),
    "narrow": lambda rng, x: (0, rng.randrange(x.shape[0]), 1),
    "reshape": lambda rng, x: ([-1],),
    "view": lambda rng, x: ([-1],),
    "unsqueeze": lambda rng, x: (rng.randrange(-x.dim() - 1, x.dim() + 1),),
    "squeeze": lambda rng, x: (),
    "diagonal": lambda rng, x: (rng.randint(-1, 1), 0, -1),
    "flatten": lambda rng, x: (),
    "unfold": lambda rng, x: (0, 1, 1),
    "chunk": lambda rng, x: (2, 0),
    "permute": lambda rng, x: (rng.sample(range(x.dim()), x.dim()),),
}
WRITES = ["add_", "mul_", "copy_", "fill_", "zero_", "clamp_", "index_fill_", "exp_", "sub_",
          "neg_", "masked_fill_", "div_", "setitem"]  # fmt: skip


def views(rng: random.Random) -> Call:
    """Writes through views of views, and their gradients."""
    x = tensor(
        rng, shape_of(rng, 1, 4, "filled"), rng.choice([*FLOATS, torch.float16, torch.int64])
    )
    probe, path = x.detach().clone(), []
    for _ in range(rng.randint(1, 3)):
        if probe.dim() == 0 or probe.numel() == 0:
            break
        name = rng.choice(list(VIEWS))
        args = VIEWS[name](rng, probe)  # type: ignore[no-untyped-call]
        try:
            result = getattr(probe, name)(*args)
        except Exception:
            continue
        probe = result[0] if name == "chunk" else result
        path.append((name, args))
    write = rng.choice(WRITES)
    size = list(probe.shape)
    size = size[rng.randint(0, len(size)) :]
    value = tensor(rng, [rng.choice([n, 1]) for n in size], x.dtype)
    mask = torch.rand(probe.shape) < 0.5

    def run(m: Any, x: Any, value: Any, mask: Any) -> Any:
        base = x * 1
        view = base
        for name, args in path:
            result = getattr(view, name)(*args)
            view = result[0] if name == "chunk" else result
        if write in ("add_", "mul_", "copy_", "sub_"):
            getattr(view, write)(value)
        elif write == "fill_":
            view.fill_(2)
        elif write == "clamp_":
            view.clamp_(-1, 1)
        elif write == "div_":
            view.div_(value.abs() + 1)
        elif write == "masked_fill_":
            view.masked_fill_(mask, 3)
        elif write == "index_fill_":
            view.index_fill_(0, m.tensor([0]), 4)
        elif write == "setitem":
            view[...] = value
        else:
            getattr(view, write)()
        return [base, view, base * base]

    return Call(run, [x, value, mask], {}, f"{write} through {path}")


BINARY = ["add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder", "fmod", "pow",
          "maximum", "minimum", "eq", "lt", "atan2", "logical_and", "bitwise_and", "bitwise_xor",
          "bitwise_left_shift", "gcd", "lcm", "hypot", "copysign", "xlogy", "float_power",
          "logaddexp", "fmax", "ge", "rsub", "heaviside", "nextafter", "lerp", "addcmul", "addcdiv",
          "clamp", "result_type", "ldexp", "isclose"]  # fmt: skip


def promotion(rng: random.Random) -> Call:
    """Two operands of any dtypes: tensors, 0-d ones and Python's numbers."""
    name = rng.choice(BINARY)
    shape = shape_of(rng, 0, 3)
    other = [rng.choice([n, n, 1]) for n in shape[rng.randint(0, len(shape)) :]]
    x = tensor(rng, shape if rng.random() < 0.8 else [], any_dtype(rng))
    y: Any = tensor(rng, other if rng.random() < 0.7 else [], any_dtype(rng))
    positive = name in ("pow", "xlogy", "float_power", "bitwise_left_shift", "gcd", "lcm", "ldexp")
    if positive:
        x = tensor(rng, list(x.shape), x.dtype, positive=True)
        y = tensor(rng, list(y.shape), y.dtype, positive=True)
    if rng.random() < 0.35:
        y = rng.choice([2, True, 0.5, 3, 1 + 2j, -2])
        y = abs(y) if positive and not isinstance(y, complex) else y
    if name in ("floor_divide", "remainder", "fmod") and isinstance(y, torch.Tensor):
        y = y.detach()
        y = torch.where(y == 0, torch.ones_like(y), y)
    if name in ("lerp", "addcmul", "addcdiv", "clamp"):
        z: Any = tensor(rng, other, rng.choice([x.dtype, any_dtype(rng)]))
        if name == "lerp":
            return Call(name, [x, y, 0.3])
        if name == "clamp":
            return Call(name, [x, *rng.choice([(y, None), (None, y), (0, 1), (-1.5, 2)])])
        return Call(name, [x, y, z], {"value": rng.choice([1, 0.5, 2])})
    if rng.random() < 0.15 and name in ("add", "sub", "mul", "div"):

        def inplace(m: Any, x: Any, y: Any) -> Any:
            x = x.clone()
            return getattr(x, f"{name}_")(y)

        return Call(inplace, [x, y], {}, f"{name}_")
    swapped = rng.random() < 0.2 and name in ("add", "mul", "eq", "pow", "sub", "div")
    if swapped and not isinstance(y, torch.Tensor):  # as Python calls it
        operator = {"add": "__radd__", "mul": "__rmul__", "eq": "__eq__", "pow": "__rpow__",
                    "sub": "__rsub__", "div": "__rtruediv__"}[name]  # fmt: skip
        return Call(lambda m, x, y: getattr(x, operator)(y), [x, y], {}, operator)
    return Call(name, [x, y])


ARRAYS = [reduction, statistic, order, counting, keyed, gathering, masks, matrices, factors,
          named_product, einsum, joins, rearranging, views, promotion]  # fmt: skip
