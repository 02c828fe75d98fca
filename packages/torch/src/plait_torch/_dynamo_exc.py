"""`torch._dynamo.exc`: the errors of PyTorch's compiler, which programs catch; none is raised."""

from __future__ import annotations

__all__ = [
    "BackendCompilerFailed",
    "FailOnRecompileLimitHit",
    "InternalTorchDynamoError",
    "InvalidBackend",
    "RecompileError",
    "ResetRequired",
    "RestartAnalysis",
    "ShortenTraceback",
    "SkipFrame",
    "TensorifyScalarRestartAnalysis",
    "TorchDynamoException",
    "TorchRuntimeError",
    "UncapturedHigherOrderOpError",
    "Unsupported",
    "UserError",
]


class TorchDynamoException(RuntimeError):
    """The base class."""


class FailOnRecompileLimitHit(Exception):
    """In PyTorch: a function was compiled too often."""


class InternalTorchDynamoError(TorchDynamoException):
    """In PyTorch: an error within the compiler."""


class InvalidBackend(TorchDynamoException):
    """In PyTorch: there is no compiler of that name."""


class RecompileError(TorchDynamoException):
    """In PyTorch: a function was compiled again where that is an error."""


class ResetRequired(TorchDynamoException):
    """In PyTorch: ``reset()`` must be called first."""


class RestartAnalysis(TorchDynamoException):
    """In PyTorch: a function is analysed again."""


class ShortenTraceback(TorchDynamoException):
    """In PyTorch: an error that is shown without the frames of the compiler."""


class SkipFrame(TorchDynamoException):
    """In PyTorch: a function is not compiled."""


class TensorifyScalarRestartAnalysis(RestartAnalysis):
    """In PyTorch: a function is analysed again, with numbers as tensors or without."""


class TorchRuntimeError(TorchDynamoException):
    """In PyTorch: an operator failed while a function was compiled."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """In PyTorch: a function that is an argument of an operator cannot be compiled."""


class Unsupported(TorchDynamoException):
    """In PyTorch: a function contains what cannot be compiled."""


class UserError(TorchDynamoException):
    """In PyTorch: a function is written in a way that cannot be compiled."""


class BackendCompilerFailed(ShortenTraceback):
    """In PyTorch: the compiler of a graph failed."""
