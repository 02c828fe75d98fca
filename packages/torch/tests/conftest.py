"""`torch`, which is plait while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plait_torch


@pytest.fixture(name="torch")
def torch_module() -> Iterator[Any]:
    with plait_torch.installed():
        import torch

        yield torch
