"""What training loops do to the parameters of a module besides stepping (PyTorch's name)."""

from plait_nn.utils import parametrizations, parametrize, rnn
from plait_nn.utils._clip import clip_grad_norm_, clip_grad_value_, get_total_norm
from plait_nn.utils._vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "rnn",
    "vector_to_parameters",
]
