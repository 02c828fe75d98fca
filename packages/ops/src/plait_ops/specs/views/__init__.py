"""Tensors that share the elements of another."""
