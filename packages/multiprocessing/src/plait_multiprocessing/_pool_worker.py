"""The main function of a pool's workers."""

from __future__ import annotations

import struct
import sys
import traceback
from collections.abc import Callable
from multiprocessing import pool as standard
from typing import Any

from plait_multiprocessing._connections import Connection
from plait_multiprocessing._pool_tasks import IDLE, Task, Tasks
from plait_multiprocessing._reductions import Message, dumps

# job, index of the task, success, number of bytes of text that follow
HEAD = struct.Struct("<qqqq")
NO_JOB = -1  # the job number of errors before the first task
_pool: Any = standard


def serve(
    tasks: Tasks,
    sender: Connection,
    slot: int,
    initializer: Callable[..., Any] | None,
    initargs: tuple[Any, ...],
    most: int | None,
    wrap: bool,
) -> None:
    """Run tasks until there are no more, the pool's process has ended, or `most` are done."""
    if initializer is not None:
        try:
            initializer(*initargs)
        except BaseException:
            text = traceback.format_exc().encode(errors="replace")
            sender.send_bytes(HEAD.pack(NO_JOB, 0, 0, len(text)) + text)
            raise
    tasks.note(slot, IDLE)
    done = 0
    while most is None or done < most:
        task = tasks.get(slot)
        if task is None:
            break
        answer = _answer(task, wrap)
        try:
            sender.send_bytes(answer)
        except OSError:  # the pool's process has ended
            break
        tasks.note(slot, IDLE)
        task = answer = None  # type: ignore[assignment]
        done += 1


def _answer(task: Task, wrap: bool) -> bytes:
    good, value, text = _done(task, wrap)
    try:
        pickled = dumps((good, value))
    except Exception as error:
        value = _unsendable(error, value)
        good, pickled = False, dumps((False, value))
        text = value.tb
    encoded = text.encode(errors="replace")
    message = Message(HEAD.pack(task.job, task.index, good, len(encoded)) + encoded + pickled)
    if isinstance(pickled, Message):
        message.tickets = pickled.tickets
    return message


def _done(task: Task, wrap: bool) -> tuple[bool, Any, str]:
    """Run a task; return success, the result or exception, and a text about it."""
    function = None
    try:
        function, args, keywords = task.load()
        value = function(*args, **keywords)
        return True, value, f"{type(value).__module__}.{type(value).__qualname__}"
    except Exception as error:
        if function is None and sys.version_info >= (3, 11):
            error.add_note("raised when a worker of the pool unpickled the task")
        text = "".join(traceback.format_exception(error))
        if wrap and function is not _pool._helper_reraises_exception:
            return False, _pool.ExceptionWithTraceback(error, error.__traceback__), text
        return False, error, text


def _unsendable(error: Exception, value: Any) -> Any:
    """Return the error for a result or exception that cannot be pickled, with the traceback."""
    raised = isinstance(value, _pool.ExceptionWithTraceback)
    subject = value.exc if raised else value
    try:
        repr(subject)
    except Exception:
        subject = object.__repr__(subject)
    substitute = _pool.MaybeEncodingError(error, subject)
    result = _pool.ExceptionWithTraceback(substitute, error.__traceback__)
    if raised:
        result.tb = value.tb
    return result
