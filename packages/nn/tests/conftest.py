import importlib.util
import pathlib
import sys

import numpy as np
import pytest

import plait_core as pc

# tests are imported by file (importlib mode): make the formulas importable by name
_path = pathlib.Path(__file__).with_name("reference.py")
_spec = importlib.util.spec_from_file_location("nn_reference", _path)
reference = importlib.util.module_from_spec(_spec)
sys.modules.setdefault("nn_reference", reference)
_spec.loader.exec_module(reference)


@pytest.fixture(autouse=True)
def seed():
    pc.manual_seed(0)


@pytest.fixture
def draw():
    """Draw a normal float64 array of the given shape; every run draws the same ones."""
    generator = np.random.default_rng(0)
    return lambda *shape: generator.standard_normal(shape)
