"""Tests beside another library run where that library is."""

from __future__ import annotations

import importlib.util

collect_ignore = [] if importlib.util.find_spec("torch") else ["test_torch.py"]
