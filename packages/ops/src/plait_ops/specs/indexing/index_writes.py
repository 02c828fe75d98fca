"""Writing whole slices, masked elements and places of the flattened tensor."""

import functools

import numpy as np

from plait_ops.calls import (
    clone,
    copy_,
    expand,
    index_put_,
    index_put_tensors_,
    narrow,
    nonzero,
    reshape,
    select,
    view,
)
from plait_ops.spec import Composite
from plait_ops.words import (
    broadcast,
    check,
    fits,
    is_tensor,
    numel,
    require,
    require_same,
    viewable,
    wrap_dim,
)


def _both(name, arguments, text, more, example):
    """Define ``name_``, which writes, and ``name``, which writes a copy."""
    doc = f"""
    {text}
    {more}

    >>> import plait_core as pc
    >>> {example[0]}
    {example[1]}
    """
    writes = Composite(
        f"{name}_(Tensor(a)! self, {arguments}) -> Tensor(a)!",
        doc=doc.replace(f".{name}(", f".{name}_("),
        dtypes="any",
    )
    return writes, Composite(f"{name}(Tensor self, {arguments}) -> Tensor", doc=doc, dtypes="any")


def _tested(pair, reference, samples, errors):
    """Give both forms their reference, samples and errors."""
    writes, copies = pair

    @functools.wraps(reference)
    def run(**given):
        return reference(**{**given, "self": given["self"].copy()})

    @functools.wraps(reference)
    def write(**given):
        given["self"][...] = run(**given)
        return given["self"]

    writes.reference(write)
    copies.reference(run)
    for each in pair:
        each.samples(samples)
        for kind, call, contains in errors:
            each.error(kind, call, contains=contains)


# ---- slices along a dimension ------------------------------------------------------------------
index_copy_, index_copy = _both(
    "index_copy",
    "int dim|axis, Tensor index, Tensor source",
    "`self` with the slices of `source` written at `index` along `dim`: ``self[index[i]] = source[i]``.",
    """
    Shape: `source` has that of `self` with the length of `index` along `dim`. Of several slices for one place one is kept.
    Raises: IndexError for a `dim` or an index out of range, ShapeError for other shapes, DTypeError unless `index` holds
    integers and the others have one dtype.
    """,
    (
        "pc.zeros(3).index_copy(0, pc.tensor([2, 0]), pc.tensor([5.0, 6.0])).tolist()",
        "[6.0, 0.0, 5.0]",
    ),
)
index_fill_, index_fill = _both(
    "index_fill",
    "int dim|axis, Tensor index, Tensor|Scalar value",
    "`self` with `value`, a number or a 0-d tensor, in its slices at `index` along `dim`.",
    """
    Raises: IndexError for a `dim` or an index out of range, ShapeError if `value` has dimensions, DTypeError unless
    `index` holds integers.
    """,
    ("pc.zeros(3).index_fill(0, pc.tensor([2, 0]), 1).tolist()", "[1.0, 0.0, 1.0]"),
)


@index_copy_.decompose
def _(self, dim, index, source):
    at = wrap_dim("dim", dim, self.shape)
    check(index.ndim <= 1, f"`index` must have 1 dimension; got shape {index.shape}")
    require("index", index.dtype, "integer")
    require_same("self", self, "source", source)
    want = list(self.shape)
    if self.ndim > 0:
        want[at] = numel(index.shape)
    check(
        source.shape == want or (self.ndim <= 1 and numel(source.shape) == numel(index.shape)),
        f"`source` must have shape {tuple(want)} for `self` of shape {self.shape}; got {source.shape}",
    )
    places = []
    for _i in range(at):
        places.append(None)
    places.append(reshape(index, [-1]))
    flat = view(self, [1]) if self.ndim == 0 else self
    rows = reshape(source, [-1]) if self.ndim <= 1 else source
    index_put_tensors_(flat, places, rows)
    return self


@index_fill_.decompose
def _(self, dim, index, value):
    at = wrap_dim("dim", dim, self.shape)
    check(index.ndim <= 1, f"`index` must have 1 dimension; got shape {index.shape}")
    require("index", index.dtype, "integer")
    if is_tensor(value):
        check(value.ndim == 0, f"`value` must be a number or a 0-d tensor; got shape {value.shape}")
    fits("value", value, self.dtype)
    places = []
    for _i in range(at):
        places.append(None)
    places.append(reshape(index, [-1]))
    flat = view(self, [1]) if self.ndim == 0 else self
    index_put_tensors_(flat, places, value)
    return self


@index_copy.decompose
def _(self, dim, index, source):
    return index_copy_(clone(self), dim, index, source)


@index_fill.decompose
def _(self, dim, index, value):
    return index_fill_(clone(self), dim, index, value)


def _slices(self, dim, index, source):
    if not self.ndim:
        self[...] = np.reshape(source, ()) if index.size else self
        return self
    self[(slice(None),) * (dim % self.ndim) + (np.atleast_1d(index),)] = source
    return self


def _slice_samples(source):
    def draw(s):
        yield s(s.array(4, 5), 0, np.array([2, 0]), source(s, 2, 5))
        yield s(s.array(4, 5), -1, np.array([-1, 1, 0]), source(s, 4, 3))
        yield s(s.strided(4, 3, 2), 1, np.array([2, 0], "int32"), source(s, 4, 2, 2))
        yield s(s.array(4), 0, np.array(1), source(s, 1))
        yield s(s.array(), 0, np.array([0]), source(s, 1))
        yield s(s.array(4, 5), 0, s.indices(4, 0), source(s, 0, 5))

    return draw


def _slice_errors(source):
    return [
        (
            "IndexError",
            lambda s: s(s.array(2, 3), 2, s.indices(2, 1), source(s, 1, 3)),
            ["index_", "dim", "(2, 3)"],
        ),
        (
            "IndexError",
            lambda s: s(s.array(2, 3), 0, np.array([2]), source(s, 1, 3)),
            ["index", "2"],
        ),
        (
            "ShapeError",
            lambda s: s(s.array(2, 3), 0, s.indices(2, 1, 1), source(s, 1, 3)),
            ["index_", "index", "(1, 1)"],
        ),
        (
            "DTypeError",
            lambda s: s(s.array(2, 3), 0, s.array(1), source(s, 1, 3)),
            ["index_", "index", "float32"],
        ),
    ]


_tested(
    (index_copy_, index_copy),
    _slices,
    _slice_samples(lambda s, *shape: s.array(*shape)),
    [
        *_slice_errors(lambda s, *shape: s.array(*shape)),
        (
            "ShapeError",
            lambda s: s(s.array(2, 3), 0, s.indices(2, 1), s.array(2, 3)),
            ["index_copy", "source", "(1, 3)", "(2, 3)"],
        ),
    ],
)
_tested(
    (index_fill_, index_fill),
    lambda self, dim, index, value: _slices(self, dim, index, value),
    _slice_samples(lambda s, *shape: 2.5 if len(shape) == 1 else s.array()),
    _slice_errors(lambda s, *shape: 1.5),
)


# ---- arrays of indices -------------------------------------------------------------------------
index_put = Composite(
    "index_put(Tensor self, Tensor?[] indices, Tensor|Scalar values, bool accumulate=False) -> Tensor",
    doc="""
    A copy of `self` on which `index_put_` has worked.

    >>> import plait_core as pc
    >>> pc.zeros(3).index_put([pc.tensor([0, 0])], pc.tensor(1.0), accumulate=True).tolist()
    [2.0, 0.0, 0.0]
    """,
    dtypes="any",
)


@index_put.decompose
def _(self, indices, values, accumulate):
    return index_put_(clone(self), indices, values, accumulate)


@index_put.reference
def _(self, indices, values, accumulate=False):
    made = self.copy()
    key = tuple(slice(None) if each is None else each for each in indices)
    if accumulate:
        np.add.at(made, key, np.asarray(values).astype(made.dtype))
    else:
        made[key] = values
    return made


@index_put.samples
def _(s):
    yield s(s.array(4, 5), [np.array([2, 0, 1])], s.array(3, 5))
    yield s(s.array(4, 5), [None, s.indices(5, 9)], s.array(4, 9), True)
    yield s(s.array(4, 5), [s.array(4, 5, dtype="bool")], 1.5)
    yield s(s.array(4, 5), [np.array([True, False, True, False]), np.array([1])], s.array(1))


index_put.error(
    "IndexError", lambda s: s(s.array(3), [np.array([3])], 1.0), contains=["index_put", "3"]
)


# ---- masks -------------------------------------------------------------------------------------
masked_scatter_, masked_scatter = _both(
    "masked_scatter",
    "Tensor mask, Tensor source",
    "`self` with the elements of `source`, in order, where `mask` is True.",
    """
    Shape: `mask` broadcasts to that of `self`; `source` has at least as many elements as `mask` names.
    Raises: DTypeError unless `mask` is bool and the others have one dtype, ShapeError for other shapes or a `source` that
    is too short.
    """,
    (
        "pc.zeros(3).masked_scatter(pc.tensor([True, False, True]), pc.tensor([5.0, 6.0])).tolist()",
        "[5.0, 0.0, 6.0]",
    ),
)


@masked_scatter_.decompose
def _(self, mask, source):
    require("mask", mask.dtype, "bool")
    require_same("self", self, "source", source)
    shape = broadcast("self", self.shape, "mask", mask.shape)
    check(self.shape == shape, f"`mask` of shape {mask.shape} must broadcast to shape {self.shape}")
    flat = view(self, [1]) if self.ndim == 0 else self
    wide = reshape(expand(mask, shape), flat.shape)
    rows = nonzero(wide)
    have = numel(source.shape)
    check(
        rows.shape[0] <= have,
        f"`source` of {have} elements must have one for each of the {rows.shape[0]} that `mask` names",
    )
    places = []
    for d in range(flat.ndim):
        places.append(select(rows, 1, d))
    index_put_tensors_(flat, places, narrow(reshape(source, [-1]), 0, 0, rows.shape[0]))
    return self


@masked_scatter.decompose
def _(self, mask, source):
    shape = broadcast("self", self.shape, "mask", mask.shape)
    return masked_scatter_(clone(expand(self, shape)), mask, source)


def _masked(self, mask, source):
    self = np.array(np.broadcast_to(self, np.broadcast_shapes(self.shape, mask.shape)))
    wide = np.broadcast_to(mask, self.shape)
    self[wide] = source.reshape(-1)[: wide.sum()]
    return self


def _mask_samples(s):
    yield s(s.array(3, 4), s.array(3, 4, dtype="bool"), s.array(3, 4))
    yield s(s.array(3, 4), s.array(4, dtype="bool"), s.array(20))
    yield s(s.strided(3, 4), s.array(3, 1, dtype="bool"), s.strided(4, 4))
    yield s(s.array(), np.array(True), s.array(1))
    yield s(s.array(0, 3), s.array(3, dtype="bool"), s.array(0))


_tested(
    (masked_scatter_, masked_scatter),
    _masked,
    _mask_samples,
    [
        (
            "DTypeError",
            lambda s: s(s.array(2), s.array(2), s.array(2)),
            ["masked_scatter", "mask", "float32"],
        ),
        (
            "ShapeError",
            lambda s: s(s.array(3), np.array([True, True, False]), s.array(1)),
            ["masked_scatter", "source", "1", "2"],
        ),
        (
            "ShapeError",
            lambda s: s(s.array(2, 3), s.array(4, dtype="bool"), s.array(9)),
            ["masked_scatter", "(2, 3)", "(4,)"],
        ),
    ],
)


# ---- places of the flattened tensor ------------------------------------------------------------
put_, put = _both(
    "put",
    "Tensor index, Tensor source, bool accumulate=False",
    "`self` with the elements of `source` at `index` of the flattened tensor, or added there with `accumulate`.",
    """
    Raises: IndexError for an index out of range, ShapeError unless `index` and `source` have as many elements, DTypeError
    unless `index` holds integers and the others have one dtype.
    """,
    (
        "pc.zeros(2, 2).put(pc.tensor([3, 0]), pc.tensor([5.0, 6.0])).tolist()",
        "[[6.0, 0.0], [0.0, 5.0]]",
    ),
)


@put_.decompose
def _(self, index, source, accumulate):
    require("index", index.dtype, "integer")
    require_same("self", self, "source", source)
    check(
        numel(index.shape) == numel(source.shape),
        f"`index` of shape {index.shape} and `source` of shape {source.shape} must have as many elements",
    )
    places = [reshape(index, [-1])]
    if viewable(self, [numel(self.shape)]):
        index_put_tensors_(view(self, [-1]), places, reshape(source, [-1]), accumulate)
    else:
        flat = clone(reshape(self, [-1]))
        index_put_tensors_(flat, places, reshape(source, [-1]), accumulate)
        copy_(self, reshape(flat, self.shape))
    return self


@put.decompose
def _(self, index, source, accumulate):
    return put_(clone(self), index, source, accumulate)


def _put(self, index, source, accumulate=False):
    flat = self.reshape(-1)
    if accumulate:
        np.add.at(flat, index.reshape(-1), source.reshape(-1))
    else:
        flat[index.reshape(-1)] = source.reshape(-1)
    return flat.reshape(self.shape)


def _put_samples(s):
    yield s(s.array(3, 4), np.array([11, 0, -2]), s.array(3))
    yield s(s.strided(3, 4), np.array([[1, 0], [5, 7]]), s.array(4))
    yield s(s.array(3, 4), s.indices(12, 20), s.array(4, 5), True)
    yield s(s.array(), np.array([0]), s.array(1))


_tested(
    (put_, put),
    _put,
    _put_samples,
    [
        ("IndexError", lambda s: s(s.array(3), np.array([3]), s.array(1)), ["3"]),
        (
            "ShapeError",
            lambda s: s(s.array(3), s.indices(3, 2), s.array(1)),
            ["put", "index", "source", "(2,)", "(1,)"],
        ),
        (
            "DTypeError",
            lambda s: s(s.array(3), s.array(1), s.array(1)),
            ["put", "index", "float32"],
        ),
    ],
)
