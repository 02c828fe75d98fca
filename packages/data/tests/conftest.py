from collections.abc import Iterator

import plait_data
import pytest


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    """Each test starts and ends without a seed, a seed source and a converter."""

    def reset() -> None:
        plait_data.manual_seed(None)
        plait_data.set_seed_source(None)
        plait_data.set_batch_converter(None)

    reset()
    yield
    reset()
