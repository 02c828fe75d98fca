"""Test data of aliases: the samples of the operators that they call."""

from plait_ops.samples.drawing import draw
from plait_ops.specs.aliases import ALIASES

NO_GRADIENT = ("igamma", "igammac")  # the first argument has no derivative


def _samples(name, of):
    return lambda s: (x.without_gradient() if name in NO_GRADIENT else x for x in draw(of))


for each, of in ALIASES.items():
    name = each.schema.base
    each.samples(_samples(name, of))
    each.error("TypeError", lambda s: s("x"), contains=[name])
