"""Aliases of a tensor, with and without history."""

from plait_ops.spec import View
from plait_ops.words import view as look

detach = View(
    "detach(Tensor(a) self) -> Tensor(a)",
    doc="""
    `self` cut off from the history of its computation: the same elements, and no gradient flows through.

    >>> import plait_core as pc
    >>> pc.ones(2).detach().tolist()
    [1.0, 1.0]
    """,
    cut=True,
    variants="function method",
)
alias = View(
    "alias(Tensor(a) self) -> Tensor(a)",
    doc="""
    Another handle of the same elements; gradients flow through.

    >>> import plait_abi, plait_core as pc
    >>> plait_abi.operator("alias")(pc.ones(2)).tolist()
    [1.0, 1.0]
    """,
    variants="",
)


@detach.shape
@alias.shape
def _(self):
    return look(self, self.shape, self.strides)


@alias.vjp("self")
def _(g):
    return g
