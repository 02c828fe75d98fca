"""Sparse tensors, of coordinates and in compressed layouts."""
