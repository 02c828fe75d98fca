"""Datasets in files of standard formats."""

from plait_data.datasets import idx
from plait_data.datasets._mnist import MNIST

__all__ = ["MNIST", "idx"]
