"""Convolutions, and the windows that they see."""
