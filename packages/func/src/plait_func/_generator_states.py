"""The states of generators, to draw the same numbers again."""

from __future__ import annotations

from typing import Any

from plait_abi.binding import default_generators


class GeneratorStates:
    """The state of a generator, or those of the default generators of all devices, at a moment.

    Example:
        >>> import plait_core as pc
        >>> from plait_func._generator_states import GeneratorStates
        >>> states = GeneratorStates()
        >>> x = pc.rand(2)
        >>> states.restore()
        >>> pc.equal(pc.rand(2), x)
        True
    """

    def __init__(self, generator: Any = None) -> None:
        self._generators = default_generators() if generator is None else [generator]
        self._states = [each.get_state() for each in self._generators]

    def restore(self) -> None:
        """Let the generators draw the same numbers again."""
        for generator, state in zip(self._generators, self._states, strict=True):
            generator.set_state(state)
