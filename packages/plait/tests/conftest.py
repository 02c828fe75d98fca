"""`torch`, which is plait while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plait.torch


@pytest.fixture(name="torch")
def torch_module() -> Iterator[Any]:
    with plait.torch.installed():
        import torch

        yield torch
