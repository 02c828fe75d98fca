"""Test data of linalg/distances: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.linalg.distances import (
    cdist_,
    cosine_similarity,
    dist,
    distances_backward,
    euclidean_distances,
    pairwise_distance_,
    pdist,
    renorm,
)


def _norm(x, p, axis=-1, keepdims=False):
    with np.errstate(all="ignore"):
        size = abs(x).astype("float64")
        if p == 0:
            result = (size != 0).sum(axis, keepdims=keepdims)
        elif math.isinf(p):
            result = size.max(axis, keepdims=keepdims)
        else:
            result = (size**p).sum(axis, keepdims=keepdims) ** (1 / p)
    return np.asarray(result).astype(x.dtype)


@cdist_.reference
def _(x1, x2, p=2.0, compute_mode=None):
    return (
        _norm(x1[..., :, None, :] - x2[..., None, :, :], p)
        if x1.shape[-1]
        else np.zeros(
            (*np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), x1.shape[-2], x2.shape[-2]),
            x1.dtype,
        )
    )


@euclidean_distances.reference
def _(x1, x2):
    return _norm(x1[..., :, None, :] - x2[..., None, :, :], 2.0)


@euclidean_distances.samples
def _(s):
    yield s(s.distinct(3, 2), s.distinct(4, 2) + 0.1).loosely(4)
    yield s(s.array(9, 5), s.array(35, 5)).loosely(4)
    yield s(s.array(2, 3, 2), s.strided(2, 4, 2)).loosely(4)
    yield s(s.array(2, 0), s.array(3, 0))
    yield s(s.array(0, 2), s.array(3, 2))


euclidean_distances.error(
    "ShapeError",
    lambda s: s(s.array(2, 3, 2), s.array(3, 4, 2)),
    contains=["euclidean_distances", "(2, 3, 2)", "(3, 4, 2)"],
)


@distances_backward.reference
def _(grad, distances, x1, x2):
    near = distances == 0
    pull = np.where(near, 0, grad / np.where(near, 1, distances))
    return (pull[..., None] * (x1[..., :, None, :] - x2[..., None, :, :])).sum(-2).astype(x1.dtype)


@distances_backward.samples
def _(s):
    yield s(s.array(3, 4), abs(s.array(3, 4)) + 0.5, s.array(3, 2), s.array(4, 2)).loosely(8)
    yield s(s.array(9, 35), abs(s.array(9, 35)) + 0.5, s.array(9, 5), s.array(35, 5)).loosely(8)
    yield s(
        s.array(2, 3, 4), abs(s.array(2, 3, 4)) + 0.5, s.array(2, 3, 20), s.array(2, 4, 20)
    ).loosely(8)
    yield s(s.strided(9, 10), abs(s.array(9, 10)) + 0.5, s.array(9, 9), s.strided(10, 9)).loosely(8)
    yield s(s.array(3, 0), s.array(3, 0), s.array(3, 2), s.array(0, 2))


distances_backward.error(
    "ShapeError",
    lambda s: s(s.array(3, 4), s.array(4, 3), s.array(3, 2), s.array(4, 2)),
    contains=["distances_backward", "(3, 4)", "(4, 3)"],
)


@cdist_.samples
def _(s):
    for p in (2.0, 1.0, 3.0, 0.0, math.inf):
        yield s(s.distinct(3, 2), s.distinct(4, 2) + 0.1, p).loosely(4)
    yield s(s.array(3, 2), s.array(4, 2)).loosely(4)
    yield s(s.array(2, 1, 3, 2), s.array(5, 4, 2)).loosely(4)
    yield s(s.array(3, 0), s.array(2, 0))
    yield s(s.strided(3, 2), s.strided(2, 2)).loosely(4)


cdist_.error(
    "ShapeError",
    lambda s: s(s.array(3, 2), s.array(4, 3)),
    contains=["cdist", "`x1`", "(3, 2)", "(4, 3)"],
)
cdist_.error(
    "ValueError", lambda s: s(s.array(3, 2), s.array(4, 2), -1.0), contains=["cdist", "`p`", "-1"]
)


pairwise_distance_.reference(
    lambda x1, x2, p=2.0, eps=1e-6, keepdim=False: _norm(
        x1 - x2 + np.asarray(eps, x1.dtype), p, -1, keepdim
    )
)
pairwise_distance_.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), s.array(3, 4)).loosely(4),
            s(s.array(3, 4), s.array(4), 1.0, keepdim=True).loosely(4),
            s(s.array(4), s.array(2, 4), 3.0).loosely(4),
        ]
    )
)
pairwise_distance_.error(
    "ShapeError", lambda s: s(s.array(2, 3), s.array(2, 4)), contains=["(2, 3)", "(2, 4)"]
)


@pdist.reference
def _(self, p=2.0):
    i, j = np.triu_indices(len(self), 1)
    return _norm(self[i] - self[j], p)


pdist.samples(
    lambda s: iter(
        [
            s(s.array(4, 3)).loosely(4),
            s(s.array(4, 3), 1.0).loosely(4),
            s(s.array(1, 3)),
            s(s.distinct(4, 3), math.inf),
        ]
    )
)
pdist.error("ShapeError", lambda s: s(s.array(3)), contains=["pdist", "`self`", "(3,)"])


@cosine_similarity.reference
def _(x1, x2, dim=1, eps=1e-8):
    a, b = np.broadcast_arrays(x1, x2)
    size = [np.maximum(np.sqrt((x * x).sum(dim, keepdims=True)), eps) for x in (a, b)]
    return ((a / size[0]) * (b / size[1])).sum(dim).astype(x1.dtype)


cosine_similarity.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), s.array(3, 4)).loosely(4),
            s(s.array(3, 4), s.array(4), dim=-1).loosely(4),
            s(s.array(2, 3, 4), s.array(2, 3, 4), 0).loosely(4),
            s(s.np.zeros((2, 3), "float32"), s.array(2, 3)).without_gradient(),
        ]
    )
)
cosine_similarity.error(
    "IndexError", lambda s: s(s.array(3), s.array(3), 1), contains=["cosine_similarity", "dim"]
)


dist.reference(lambda self, other, p=2: _norm((self - other).reshape(-1), p))
dist.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), s.array(3, 4)).loosely(4),
            s(s.array(3, 4), s.array(4), 1).loosely(4),
            s(s.distinct(3, 4), s.array(1), math.inf),
        ]
    )
)
dist.error("ShapeError", lambda s: s(s.array(2), s.array(3)), contains=["(2,)", "(3,)"])


@renorm.reference
def _(self, p, dim, maxnorm):
    others = tuple(i for i in range(self.ndim) if i != dim % self.ndim)
    size = (abs(self) ** p).sum(others, keepdims=True) ** (1 / p)
    with np.errstate(all="ignore"):
        return (self * np.where(size > maxnorm, maxnorm / (size + 1e-7), 1)).astype(self.dtype)


renorm.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), 2, 0, 2.0).loosely(4),
            s(s.array(3, 4), 1, 1, 3.0).loosely(4),
            s(s.array(2, 3, 4), 3.0, -1, 1.0).loosely(4),
        ]
    )
)
renorm.error("ShapeError", lambda s: s(s.array(3), 2, 0, 1.0), contains=["renorm", "(3,)"])
renorm.error("ValueError", lambda s: s(s.array(3, 3), 2, 0, -1.0), contains=["renorm", "maxnorm"])
