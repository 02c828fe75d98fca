"""Automatic differentiation for plait: records operators, and computes gradients by backward
passes.

Importing this package loads the engine (a library without Python in it) into plait's runtime. It
works on every tensor type that has ``__plait_tensor__``.

    >>> import plait_core as pc, plait_autograd
    >>> x = pc.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
"""

from plait_abi import load as _load, paths as _paths

_load(_paths(__name__)["libplait_autograd.so"])

from plait_autograd import checkpointing, forward_ad, function, functional, graph  # noqa: E402
from plait_autograd._anomaly import (  # noqa: E402
    NanOrigin,
    detect_anomaly,
    find_nan,
    forward_traceback,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from plait_autograd._autograd import Node, grad_fn, is_grad_enabled  # noqa: E402
from plait_autograd._backward import backward, grad  # noqa: E402
from plait_autograd._check import GradcheckError, gradcheck, gradgradcheck  # noqa: E402
from plait_autograd._context import FunctionContext  # noqa: E402
from plait_autograd._function import Function, once_differentiable  # noqa: E402
from plait_autograd._hooks import (  # noqa: E402
    has_hooks,
    output_nr,
    register_hook,
    register_post_accumulate_grad_hook,
    retains_grad,
)
from plait_autograd._modes import (  # noqa: E402
    enable_grad,
    inference_mode,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from plait_autograd._removable_handle import RemovableHandle  # noqa: E402
from plait_autograd._view_in_place import view_in_place as _view_in_place  # noqa: E402, F401
from plait_autograd.checkpointing import checkpoint, checkpoint_sequential  # noqa: E402

__all__ = [
    "Function",
    "FunctionContext",
    "GradcheckError",
    "NanOrigin",
    "Node",
    "RemovableHandle",
    "backward",
    "checkpoint",
    "checkpoint_sequential",
    "checkpointing",
    "detect_anomaly",
    "enable_grad",
    "find_nan",
    "forward_ad",
    "forward_traceback",
    "function",
    "functional",
    "grad",
    "grad_fn",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "has_hooks",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "output_nr",
    "register_hook",
    "register_post_accumulate_grad_hook",
    "retains_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

__version__ = "0.2.0"
