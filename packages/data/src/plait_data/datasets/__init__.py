"""Datasets in files of standard formats: MNIST, text, CSV, NumPy's arrays, folders of images.

Samples are read at access. A ``transform`` is any function of a sample.
"""

from plait_data.datasets import idx
from plait_data.datasets._csv import CSVRows
from plait_data.datasets._images import IMAGE_EXTENSIONS, ImageFolder, load_image
from plait_data.datasets._mnist import MNIST
from plait_data.datasets._numpy_files import NumPyArrays
from plait_data.datasets._text import TextLines

__all__ = [
    "IMAGE_EXTENSIONS",
    "MNIST",
    "CSVRows",
    "ImageFolder",
    "NumPyArrays",
    "TextLines",
    "idx",
    "load_image",
]
