"""`plait.version`: the version of plait and of what it was built with, under PyTorch's names.

``cuda`` is None: plait needs no CUDA toolkit, and finds drivers and libraries when it first uses
them; ``plait.cuda.is_available()`` says whether there is a device.

Example:
    >>> import plait
    >>> plait.version.__version__ == plait.__version__, plait.version.cuda
    (True, None)
"""

from plait_abi.components import require

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__: str = require("core").__version__
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug = False
git_version = f"v{__version__}"
"""The name by which git knows the sources: the tag of the release."""
