"""Exceptions of workers, sent to the program with their types and tracebacks."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

from plait_data._workers._codec import dumps

__all__ = ["Failure", "WorkerTraceback", "capture", "restore"]

Failure = tuple[bytes, str, str]  # the pickled exception (empty if it has none), its name, its text


class WorkerTraceback(Exception):
    """The traceback in a worker, as the cause of a worker's exception."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def capture(error: BaseException, what: str) -> Failure:
    """The data of an exception in a worker, to be sent; ``what`` describes the worker's action."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return _pickled(error), what, trace


def _pickled(error: BaseException) -> bytes:
    error.__traceback__ = None
    try:
        content = dumps(error)
        if type(pickle.loads(content)) is type(error):
            return content
    except Exception:
        # its constructor takes other arguments than its `args`, or it has attributes that cannot be
        # pickled
        pass
    try:
        return dumps((_bare, (type(error), error.args, _plain(vars(error)))))
    except Exception:
        return b""


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    plain = {}
    for name, value in attributes.items():
        try:
            dumps(value)
        except Exception:
            continue
        plain[name] = value
    return plain


def _bare(kind: type[BaseException], arguments: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(state)
    return error


def restore(failure: Failure, worker: int, pid: int | None) -> BaseException:
    """The exception, with the worker's traceback as its cause and a note that names the worker."""
    content, what, trace = failure
    error: Any = None
    if content:
        try:
            error = pickle.loads(content)
            if isinstance(error, tuple):
                error = error[0](*error[1])
        except Exception:
            error = None
    phase = f"in worker {worker} (pid {pid}) of the DataLoader, {what}"
    if not isinstance(error, BaseException):
        error = RuntimeError(f"DataLoader: an exception that can't be sent {phase}:\n{trace}")
    if hasattr(error, "add_note"):  # Python 3.11 and later
        error.add_note(f"raised {phase}")
    error.__cause__ = WorkerTraceback(f"{trace}raised {phase}\n")
    return error  # type: ignore[no-any-return]
