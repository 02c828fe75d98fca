"""The mailbox of a process: an actor that takes calls for it, as only actors can be called.

Messages pass through it as references to objects, which it never unpickles. It belongs to the
process that made it: Ray ends it, and every call that waits in it, when that process ends.
"""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["Mailbox"]


class Mailbox:
    """The actor's class. Its methods run in one thread, and wait for each other by `await`."""

    def __init__(self, about: str) -> None:
        self._about = about
        self._calls: asyncio.Queue[tuple[int, Any]] = asyncio.Queue()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._arrived: dict[str, set[int]] = {}
        self._everybody = asyncio.Condition()

    def __repr__(self) -> str:
        return f"mailbox of {self._about}"

    async def describe(self) -> str:
        """Return the owner's entry."""
        return self._about

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
        """Return the messages that have come; if there is none, wait for one so long."""
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
        """Return when all ranks have called this with the name."""
        async with self._everybody:
            self._arrived.setdefault(name, set()).add(rank)
            self._everybody.notify_all()
            await self._everybody.wait_for(lambda: len(self._arrived[name]) == size)
