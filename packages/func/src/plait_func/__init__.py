"""Functions of functions: `vmap`, and derivatives of functions of tensors.

They compose: `vmap` of `grad` gives the gradients of single samples, `hessian` is `jacfwd` of
`jacrev`. `plait.func` is this package, and `plait.vmap` is `vmap`.

    >>> import plait_core as pc
    >>> from plait_func import grad, vmap
    >>> vmap(grad(lambda x: (x**3).sum()))(pc.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[ 3., 12.],
            [27., 48.]])
"""

from plait_func._func import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
)
from plait_func._vmap import vmap
from plait_nn import functional_call

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

__version__ = "0.2.0"
