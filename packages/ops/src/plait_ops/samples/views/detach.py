"""Test data of views/detach: references in NumPy, sample calls, errors."""

from plait_ops.specs.views.detach import alias, detach

for each in (detach, alias):
    each.reference(lambda self: self)
    each.samples(lambda s: iter([s(s.array(2, 3)), s(s.backwards(3)), s(s.array()), s(s.array(0))]))
    each.error("TypeError", lambda s: s(2), contains=[each.name, "self"])
