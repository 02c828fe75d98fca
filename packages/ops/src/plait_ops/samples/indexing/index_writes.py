"""Test data of indexing/index_writes: references in NumPy, sample calls, errors."""

import functools

import numpy as np

from plait_ops.specs.indexing.index_writes import (
    index_copy,
    index_copy_,
    index_fill,
    index_fill_,
    index_put,
    masked_scatter,
    masked_scatter_,
    put,
    put_,
)


def _define_tests(pair, reference, samples, errors):
    """Set reference, samples and errors of both forms."""
    writes, copies = pair

    @functools.wraps(reference)
    def run(**arguments):
        return reference(**{**arguments, "self": arguments["self"].copy()})

    @functools.wraps(reference)
    def write(**arguments):
        arguments["self"][...] = run(**arguments)
        return arguments["self"]

    writes.reference(write)
    copies.reference(run)
    for each in pair:
        each.samples(samples)
        for kind, call, contains in errors:
            each.error(kind, call, contains=contains)


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


_define_tests(
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
_define_tests(
    (index_fill_, index_fill),
    lambda self, dim, index, value: _slices(self, dim, index, value),
    _slice_samples(lambda s, *shape: 2.5 if len(shape) == 1 else s.array()),
    _slice_errors(lambda s, *shape: 1.5),
)


@index_put.reference
def _(self, indices, values, accumulate=False):
    result = self.copy()
    key = tuple(slice(None) if each is None else each for each in indices)
    if accumulate:
        np.add.at(result, key, np.asarray(values).astype(result.dtype))
    else:
        result[key] = values
    return result


@index_put.samples
def _(s):
    yield s(s.array(4, 5), [np.array([2, 0, 1])], s.array(3, 5))
    yield s(s.array(4, 5), [None, s.indices(5, 9)], s.array(4, 9), True)
    yield s(s.array(4, 5), [s.array(4, 5, dtype="bool")], 1.5)
    yield s(s.array(4, 5), [np.array([True, False, True, False]), np.array([1])], s.array(1))


index_put.error(
    "IndexError", lambda s: s(s.array(3), [np.array([3])], 1.0), contains=["index_put", "3"]
)


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


_define_tests(
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


_define_tests(
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
