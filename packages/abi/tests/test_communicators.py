"""The role `communicator` where nobody provides it; providers are tested by the conformance kit."""

from __future__ import annotations

import pytest

import plait_abi


def test_a_provider_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no communicator named nobody is provided for 'cpu'"):
        plait_abi.Communicator.open("nobody", "anywhere", 0, 1)
    with pytest.raises(ValueError, match=r"`rank` must be in \[0, 1\], got 2"):
        plait_abi.Communicator.open("nobody", "anywhere", 2, 2)
    with pytest.raises(TypeError, match="`device` must be a device or its name, got b"):
        plait_abi.Communicator.open("nobody", "anywhere", 0, 1, device=b"x")
