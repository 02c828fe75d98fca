"""Softmax and the normalization of batches, layers and groups."""
