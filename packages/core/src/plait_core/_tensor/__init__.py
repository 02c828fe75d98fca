"""Attributes and methods of Tensor that are not operators."""
