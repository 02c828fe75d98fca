"""Aliases of a tensor, with and without history."""

from plait_ops.spec import View
from plait_ops.words import view as look

detach = View(
    "detach(Tensor(a) self) -> Tensor(a)",
    doc="""
    A tensor with the same elements as `self`, in the same memory, through which no gradient flows.

    >>> import plait_core as pc
    >>> pc.ones(2).detach().tolist()
    [1.0, 1.0]
    """,
    cut=True,
    variants="function method",
)
detach.shard("elements", linear=["self"])
detach.batch("leading")
alias = View(
    "alias(Tensor(a) self) -> Tensor(a)",
    doc="""
    Another tensor with the same elements in the same memory, through which gradients flow.

    >>> import plait_abi, plait_core as pc
    >>> plait_abi.operator("alias")(pc.ones(2)).tolist()
    [1.0, 1.0]
    """,
    variants="",
)
alias.shard("elements", linear=["self"])
alias.batch("leading")


@detach.shape
@alias.shape
def _(self):
    return look(self, self.shape, self.strides)


@alias.vjp("self")
def _(g):
    return g
