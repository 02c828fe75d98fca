"""Pooling: a maximum or an average of each window."""
