"""Test data of indexing/embedding: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.indexing.embedding import embedding, embedding_backward, one_hot


@embedding_backward.reference
def _(grad, indices, num_weights, padding_idx):
    result = np.zeros((num_weights, grad.shape[-1]), grad.dtype)
    np.add.at(result, indices, np.where((indices == padding_idx)[..., None], 0, grad))
    return result


embedding.reference(lambda weight, indices, padding_idx=-1: weight[indices])
embedding.samples(
    lambda s: iter(
        [
            s(s.array(5, 3), s.indices(5, 4)),
            s(s.array(5, 3), s.indices(5, 2, 3, dtype="int32"), 1),
            s(s.strided(5, 3), s.indices(5)),
            s(s.array(5, 3), s.indices(5, 0)),
        ]
    )
)
embedding_backward.samples(
    lambda s: iter(
        [s(s.array(4, 3), s.indices(5, 4), 5, -1), s(s.array(2, 6, 3), s.indices(3, 2, 6), 3, 1)]
    )
)
embedding.error(
    "ShapeError", lambda s: s(s.array(5), s.indices(5, 2)), contains=["embedding", "weight", "(5,)"]
)
embedding.error(
    "DTypeError",
    lambda s: s(s.array(5, 3), s.array(2)),
    contains=["embedding", "indices", "float32"],
)
embedding.error(
    "IndexError", lambda s: s(s.array(5, 3), np.array([5])), contains=["embedding", "5"]
)
embedding.error(
    "IndexError", lambda s: s(s.array(5, 3), np.array([-6])), contains=["embedding", "-6", "5"]
)
embedding_backward.error(
    "ShapeError",
    lambda s: s(s.array(4, 3), s.indices(5, 3), 5, -1),
    contains=["grad", "indices", "(4, 3)", "(3,)"],
)


@one_hot.reference
def _(self, num_classes=-1):
    n = int(self.max()) + 1 if num_classes == -1 else num_classes
    return (self[..., None] == np.arange(n)).astype("int64")


one_hot.samples(
    lambda s: iter(
        [
            s(s.indices(4, 5), 4),
            s(s.indices(4, 2, 3)),
            s(s.indices(3), 3),
            s(s.indices(3, 4, dtype="uint8"), 3),
        ]
    )
)
one_hot.error("DTypeError", lambda s: s(s.array(3), 3), contains=["one_hot", "self", "float32"])
one_hot.error(
    "ValueError", lambda s: s(s.indices(3, 2), -2), contains=["one_hot", "num_classes", "-2"]
)
