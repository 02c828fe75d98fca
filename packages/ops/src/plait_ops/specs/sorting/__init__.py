"""Sorting, and searching in sorted tensors."""
