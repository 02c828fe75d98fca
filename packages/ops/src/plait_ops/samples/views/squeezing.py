"""Test data of views/squeezing: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.squeezing import squeeze, squeeze_dim, unsqueeze

unsqueeze.reference(lambda self, dim: np.expand_dims(self, dim))
unsqueeze.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 0),
            s(s.array(2, 3), -1),
            s(s.array(2, 3), 1),
            s(s.array(), 0),
            s(s.backwards(3), 1),
        ]
    )
)
unsqueeze.error(
    "IndexError", lambda s: s(s.array(2, 3), 3), contains=["unsqueeze", "dim", "(2, 3)", "3"]
)
unsqueeze.error(
    "IndexError", lambda s: s(s.array(2, 3), -4), contains=["unsqueeze", "dim", "(2, 3)", "-4"]
)
unsqueeze.error(
    "ShapeError", lambda s: s(s.array(*[1] * 64), 0), contains=["unsqueeze", "dim", "65", "64"]
)


@squeeze_dim.reference
def _(self, dim):
    drop = [d % max(self.ndim, 1) for d in ([dim] if isinstance(dim, int) else dim)]
    return self.reshape([n for i, n in enumerate(self.shape) if n != 1 or i not in drop])


squeeze.reference(lambda self: np.squeeze(self))
squeeze.samples(
    lambda s: iter([s(s.array(1, 3, 1)), s(s.array(2, 3)), s(s.array()), s(s.array(1, 0))])
)
squeeze_dim.samples(
    lambda s: iter(
        [s(s.array(1, 3, 1), (0,)), s(s.array(1, 3, 1), (0, -1)), s(s.array(2, 3), (0,))]
    )
)
squeeze.error("TypeError", lambda s: s("x"), contains=["squeeze", "self"])
squeeze_dim.error(
    "IndexError", lambda s: s(s.array(1, 3), (2,)), contains=["squeeze", "dim", "(1, 3)", "2"]
)
