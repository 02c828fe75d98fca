import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import plait_data

# The stand-in for a tensor library must be importable by name, as real ones are.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    """Each test starts without a seed, a seed source and a converter; those that were come back."""
    plait_data.manual_seed(None)
    source = plait_data.set_seed_source(None)
    converter = plait_data.set_batch_converter(None)
    yield
    plait_data.manual_seed(None)
    plait_data.set_seed_source(source)
    plait_data.set_batch_converter(converter)
