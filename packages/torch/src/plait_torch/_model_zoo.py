"""`torch.utils.model_zoo`: an older name of parts of `torch.hub`."""

from __future__ import annotations

from typing import Any

from plait_torch._hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # libraries take their progress bar from here
        try:
            from tqdm.auto import tqdm
        except ImportError:
            from plait_torch._hub import tqdm
        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
