"""Imported by a fork server before the program's processes start: `torch` means plait in them."""

from __future__ import annotations

from plait_torch._finder import install

install()
