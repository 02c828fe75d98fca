"""Skips what needs UCX where it is not."""

from __future__ import annotations

import pytest

import plait_ucx


@pytest.fixture(name="ucx", scope="session")
def library_of_ucx() -> None:
    """Skip if UCX is not there, with the reason."""
    try:
        plait_ucx.library_version()
    except RuntimeError as error:
        pytest.skip(str(error))
