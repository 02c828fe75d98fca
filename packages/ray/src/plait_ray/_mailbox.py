"""The mailbox of a process: an actor that receives its calls, because Ray calls actors only.

Messages pass through it as references to objects, which it never unpickles. It belongs to the
process that created it: when that process ends, Ray ends the mailbox and all calls in it.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Mailbox:
    """The actor's class. Its methods run in one thread, and wait for each other by `await`."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._calls: asyncio.Queue[tuple[int, Any]] = asyncio.Queue()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._arrived: dict[str, set[int]] = {}
        self._arrival = asyncio.Condition()

    def __repr__(self) -> str:
        return f"mailbox of {self._description}"

    async def describe(self) -> str:
        """Return the description of the owner: name, rank, size, host, pid and program."""
        return self._description

    async def call(self, message: Any) -> Any:
        """Hand a message to the owner, and return its answer."""
        self._number += 1
        number = self._number
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._calls.put_nowait((number, message))
        return await answer

    async def tell(self, message: Any) -> None:
        """Hand a message to the owner, which does not answer."""
        self._calls.put_nowait((0, message))

    async def take(self, seconds: float) -> list[tuple[int, Any]]:
        """Return the messages that have arrived; if there is none, wait so many seconds for one."""
        try:
            result = [await asyncio.wait_for(self._calls.get(), seconds)]
        except asyncio.TimeoutError:
            return []
        while not self._calls.empty():
            result.append(self._calls.get_nowait())
        return result

    async def answer(self, number: int, message: Any) -> None:
        """Finish the call of that number."""
        self._answers.pop(number).set_result(message)

    async def arrive(self, name: str, rank: int, size: int) -> None:
        """Wait until all ranks have called this with the name."""
        async with self._arrival:
            self._arrived.setdefault(name, set()).add(rank)
            self._arrival.notify_all()
            await self._arrival.wait_for(lambda: len(self._arrived[name]) == size)
