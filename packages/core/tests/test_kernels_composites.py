"""Kernels of composites: what a decomposition gives, one kernel may give in its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_core as pc
from plait_core import testing
from plait_ops import samples, specs
from plait_ops.spec import Operator

samples.load()
COMPOSITES = [spec for spec in specs.all() if spec.composite]
