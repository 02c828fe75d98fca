"""The errors for processes that failed."""

from __future__ import annotations

from typing import Any


class ProcessException(Exception):
    """A process of `spawn` failed.

    Attributes:
        msg: the text of the error.
        error_index: the index of the process.
        error_pid: the process id; ``pid`` is the same.

    Example:
        >>> import plait_multiprocessing as mp
        >>> mp.ProcessException("it went wrong", 1, 4711).error_index
        1
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = pid

    @property
    def pid(self) -> int:
        """The process id of the process that failed."""
        return self.error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the text holds the traceback.

    Args:
        msg: The message.
        error_index: Index of the process that failed first.
        pid: Its number in the system.

    Example:
        >>> import plait_multiprocessing as mp
        >>> try:
        ...     mp.spawn(divmod, (0,), start_method="fork")
        ... except mp.ProcessRaisedException as error:
        ...     print(str(error).splitlines()[-1].partition(":")[0])
        ZeroDivisionError
    """


class ProcessExitedException(ProcessException):
    """The process ended with another exit code than 0, or by a signal.

    Args:
        msg: The message.
        error_index: Index of the process that failed first.
        pid: Its number in the system.

    Attributes:
        exit_code: the `Process.exitcode`, negative for a signal.
        signal_name: the signal, or None.

    Example:
        >>> import os, plait_multiprocessing as mp
        >>> try:
        ...     mp.spawn(os._exit, start_method="fork", nprocs=2)
        ... except mp.ProcessExitedException as error:
        ...     print(error.error_index, error.exit_code)
        1 1
    """

    def __init__(
        self, msg: str, error_index: int, pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
