"""Views with dimensions of size 1 added or removed."""

from plait_ops import calls as op
from plait_ops.spec import View
from plait_ops.words import check, max_dims, view, wrap_dim

unsqueeze = View(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    doc="""
    `self` with a dimension of size 1 inserted at `dim`, which lies in ``[-ndim - 1, ndim]``.

    Raises: IndexError for a dim out of range.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(3).unsqueeze(-1).shape)
    (3, 1)
    """,
    variants="function method",
)
unsqueeze.batch("new dimension")


@unsqueeze.shape
def _(self, dim):
    n = self.ndim + 1
    check(
        -n <= dim < n,
        f"`dim` must be in [{-n}, {n - 1}] for shape {self.shape}; got {dim}. Dimension out of range",
        "IndexError",
    )
    at = dim + n if dim < 0 else dim
    max_dims("dim", n)
    step = self.shape[at] * self.strides[at] if at < self.ndim else 1
    return view(
        self,
        self.shape[:at] + [1] + self.shape[at:],
        self.strides[:at] + [step] + self.strides[at:],
    )


squeeze = View(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    doc="""
    `self` without its dimensions of size 1.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(1, 3, 1).squeeze().shape)
    (3,)
    """,
    variants="function method",
)
squeeze.batch("code")
squeeze_dim = View(
    "squeeze.dim(Tensor(a) self, int[]* dim|axis) -> Tensor(a)",
    doc="""
    `self` without the dimensions `dim` (one int or several), as far as they have size 1.

    Raises: IndexError for a dim out of range.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(1, 3, 1).squeeze(0).shape)
    (3, 1)
    """,
    variants="function method",
)
squeeze_dim.batch("dimensions")


@squeeze.shape
def _(self):
    keep = [i for i in range(self.ndim) if self.shape[i] != 1]
    return view(self, [self.shape[i] for i in keep], [self.strides[i] for i in keep])


@squeeze_dim.shape
def _(self, dim):
    drop = [wrap_dim("dim", d, self.shape) for d in dim]
    keep = [i for i in range(self.ndim) if self.shape[i] != 1 or i not in drop]
    return view(self, [self.shape[i] for i in keep], [self.strides[i] for i in keep])


@unsqueeze.vjp("self")
@squeeze.vjp("self")
@squeeze_dim.vjp("self")
def _(g, self):
    return op.reshape(g, self.shape)
