"""Test data of the operators of `plait_ops.specs.vision`."""
