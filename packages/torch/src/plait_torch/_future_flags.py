"""`torch.__future__`: how modules change their parameters when they move to another device."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]


def _refuse(name: str, value: bool) -> None:
    if value:
        raise NotImplementedError(
            f"torch.__future__.{name}: plait's modules keep their parameters and set their data "
            "when they move; only False is supported"
        )


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Accept False: parameters stay the same objects when a module moves.

    Raises:
        NotImplementedError: for True.
    """
    _refuse("set_overwrite_module_params_on_conversion", value)


def get_overwrite_module_params_on_conversion() -> bool:
    """Return False."""
    return False


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Accept False: parameters are not exchanged for others when a module moves.

    Raises:
        NotImplementedError: for True.
    """
    _refuse("set_swap_module_params_on_conversion", value)


def get_swap_module_params_on_conversion() -> bool:
    """Return False."""
    return False
