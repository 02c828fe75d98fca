"""Test data of reduction/differences: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.differences import diff


@diff.reference
def _(self, n=1, dim=-1, prepend=None, append=None):
    if n == 0:
        return self.copy()
    parts = [x for x in (prepend, self, append) if x is not None]
    return np.diff(np.concatenate(parts, dim), n, dim)


diff.samples(
    lambda s: iter(
        [
            s(s.array(5)),
            s(s.array(3, 5), 2),
            s(s.strided(3, 5), 1, 0),
            s(s.array(3, 5), 1, 1, s.array(3, 1), s.array(3, 2)),
            s(s.array(6, dtype="bool")),
            s(s.array(6, dtype="int64"), 3),
            s(s.array(3), 5),
            s(s.array(3), 0, 0, s.array(1)),
            s(s.array(4), append=s.array(1)),
        ]
    )
)
diff.error("ValueError", lambda s: s(s.array(3), -1), contains=["diff", "n", "-1"])
diff.error("ShapeError", lambda s: s(s.array()), contains=["diff", "self", "()"])
diff.error("IndexError", lambda s: s(s.array(3), 1, 1), contains=["diff", "dim", "(3,)"])
