"""`torch.utils.data.datapipes`: datasets that are made of others by the calls of methods.

torch_geometric makes such datasets; accelerate turns their shuffling on and off.
"""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import nullcontext
from itertools import chain, islice
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import plait
from plait_abi.frames import warn
from plait_data import Dataset, IterableDataset, default_collate

__all__ = [
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "_DataPipeSerializationWrapper",
    "_IterDataPipeSerializationWrapper",
    "_MapDataPipeSerializationWrapper",
    "apply_shuffle_settings",
    "argument_validation",
    "combinatorics",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "iter",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]

T = TypeVar("T")
_iter = iter


class DataChunk(list[Any]):
    """A list of elements, the batches of `batch`."""

    def raw_iterator(self) -> Iterator[Any]:
        """Return an iterator over the elements."""
        return _iter(self)


class _Methods:
    """Methods that are classes: ``pipe.name(...)`` is ``Class(pipe, ...)``."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make a function of a pipe a method of all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Make a class of pipes a method of all pipes.

        Raises:
            Exception: as PyTorch does, if there is a method of this name.
        """
        if function_name in cls.functions:
            raise Exception(f"register_datapipe_as_function: {function_name!r} is there already")
        cls.functions[function_name] = cls_to_register

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        def method(*args: Any, **kwargs: Any) -> Any:
            return function(self, *args, **kwargs)

        return method

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]


class IterDataPipe(_Methods, IterableDataset[Any]):
    """An iterable dataset with the methods of `functional_datapipe`.

    Example:
        >>> from plait_torch._datapipes import IterDataPipe, iter
        >>> pipe = iter.IterableWrapper(range(6)).filter(lambda x: x % 2 == 0).map(str).batch(2)
        >>> list(pipe)
        [['0', '2'], ['4']]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}: a subclass must define `__iter__`")

    def reset(self) -> None:
        """Do nothing: a pass over the elements begins again."""


class DFIterDataPipe(IterDataPipe):
    """The class of pipes of data frames, without any."""


class MapDataPipe(_Methods, Dataset[Any]):
    """A dataset with an index and with the methods of `functional_datapipe`.

    Example:
        >>> from plait_torch._datapipes import MapDataPipe
        >>> class Squares(MapDataPipe):
        ...     def __getitem__(self, index):
        ...         return index**2
        >>> Squares()[3]
        9
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: a subclass must define `__getitem__`")


class _DataPipeSerializationWrapper:
    """A pipe that is sent to other processes as a pickle of its own, made by dill if Python's
    `pickle` cannot (a pipe with a lambda) and dill is installed.
    """

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __getstate__(self) -> dict[str, Any]:
        try:
            return {"pickle": "pickle", "pipe": pickle.dumps(self._datapipe)}
        except Exception:
            if importlib.util.find_spec("dill") is None:
                raise
            import dill  # type: ignore[import-not-found, import-untyped, unused-ignore]

            return {"pickle": "dill", "pipe": dill.dumps(self._datapipe)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._datapipe = importlib.import_module(state["pickle"]).loads(state["pipe"])

    def __len__(self) -> int:
        return _length(self._datapipe)


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):
    """An iterable pipe around another one; see `_DataPipeSerializationWrapper`.

    Example:
        >>> import pickle
        >>> from plait_torch._datapipes import _IterDataPipeSerializationWrapper, iter
        >>> pipe = _IterDataPipeSerializationWrapper(iter.IterableWrapper([1, 2]).map(str))
        >>> list(pickle.loads(pickle.dumps(pipe)))
        ['1', '2']
    """

    _datapipe_iter: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        self._datapipe_iter = _iter(self._datapipe)
        return self

    def __next__(self) -> Any:
        if self._datapipe_iter is None:
            raise RuntimeError(f"{type(self).__name__}: `iter` must be called before `next`")
        return next(self._datapipe_iter)


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):
    """A pipe with an index around another one; see `_DataPipeSerializationWrapper`."""

    def __getitem__(self, index: Any) -> Any:
        return self._datapipe[index]


class functional_datapipe:  # noqa: N801 - PyTorch's name
    """A decorator of a class of pipes that makes it a method of all pipes.

    Example:
        >>> from plait_torch._datapipes import IterDataPipe, functional_datapipe, iter
        >>> @functional_datapipe("twice_each")
        ... class TwiceEach(IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         for each in self.source:
        ...             yield each
        ...             yield each
        >>> list(iter.IterableWrapper([1, 2]).twice_each())
        [1, 1, 2, 2]
        >>> _ = IterDataPipe.functions.pop("twice_each")
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: T) -> T:
        kinds = [kind for kind in (IterDataPipe, MapDataPipe) if issubclass(cls, kind)]  # type: ignore[arg-type]
        if not kinds:
            raise TypeError("functional_datapipe: an IterDataPipe or MapDataPipe is required")
        kinds[0].register_datapipe_as_function(self.name, cls)
        return cls


def _same(cls: T) -> T:
    """Return the class or function: types are not checked."""
    return cls


def non_deterministic(arg: Any) -> Any:
    """Return the class; after a call with a function, a decorator that does so."""
    return arg if isinstance(arg, type) else _same


argument_validation = runtime_validation = _same


class guaranteed_datapipes_determinism(nullcontext[None]):  # noqa: N801 - PyTorch's name
    """A context manager without effect."""


class runtime_validation_disabled(nullcontext[None]):  # noqa: N801 - PyTorch's name
    """A context manager without effect."""


def _length(source: Any) -> int:
    if isinstance(source, Sized):
        return len(source)
    raise TypeError(f"{type(source).__name__} instance doesn't have valid length")


class _IterableWrapper(IterDataPipe):
    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        yield from self.iterable

    def __len__(self) -> int:
        return _length(self.iterable)


@functional_datapipe("map")
class _Mapper(IterDataPipe):
    def __init__(
        self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        if input_col is not None or output_col is not None:
            raise NotImplementedError(
                "map: `input_col` and `output_col` are not supported; use the function"
            )
        self.datapipe, self.fn = datapipe, fn

    def __iter__(self) -> Iterator[Any]:
        return map(self.fn, self.datapipe)

    def __len__(self) -> int:
        return _length(self.datapipe)


@functional_datapipe("collate")
class _Collator(_Mapper):
    def __init__(
        self, datapipe: Any, conversion: Any = None, collate_fn: Callable[..., Any] | None = None
    ) -> None:
        collate = conversion if callable(conversion) else collate_fn
        super().__init__(datapipe, collate or default_collate)


@functional_datapipe("filter")
class _Filter(IterDataPipe):
    def __init__(self, datapipe: Any, filter_fn: Callable[[Any], Any]) -> None:
        self.datapipe, self.filter_fn = datapipe, filter_fn

    def __iter__(self) -> Iterator[Any]:
        return filter(self.filter_fn, self.datapipe)


@functional_datapipe("batch")
class _Batcher(IterDataPipe):
    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch: a positive size is required; got {batch_size}")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        source = _iter(self.datapipe)
        while part := list(islice(source, self.batch_size)):
            if len(part) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(part)

    def __len__(self) -> int:
        count, rest = divmod(_length(self.datapipe), self.batch_size)
        return count + (rest > 0 and not self.drop_last)


@functional_datapipe("unbatch")
class _UnBatcher(IterDataPipe):
    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        if unbatch_level < 1:
            raise NotImplementedError("unbatch: a number of levels from 1 on is required")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        elements: Iterable[Any] = self.datapipe
        for _ in range(self.unbatch_level):
            elements = chain.from_iterable(elements)
        return _iter(elements)


@functional_datapipe("concat")
class _Concater(IterDataPipe):
    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datapipes)

    def __len__(self) -> int:
        return sum(map(_length, self.datapipes))


@functional_datapipe("zip")
class _Zipper(IterDataPipe):
    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(map(_length, self.datapipes))


@functional_datapipe("shuffle")
class _Shuffler(IterDataPipe):
    """Elements in random order, drawn from a buffer that is filled again."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size < 1:
            raise ValueError(f"shuffle: a positive buffer is required; got {buffer_size}")
        self.datapipe = datapipe.unbatch(unbatch_level) if unbatch_level else datapipe
        self.buffer_size = buffer_size
        self._shuffle_enabled = True
        self._seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> _Shuffler:
        """Turn the random order on or off; return the pipe."""
        self._shuffle_enabled = shuffle
        return self

    def set_seed(self, seed: int) -> _Shuffler:
        """Set the seed of the next pass; return the pipe."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._shuffle_enabled:
            yield from self.datapipe
            return
        seed = int(plait.randint(1 << 62, ()).item()) if self._seed is None else self._seed
        self._seed = None
        source = random.Random(seed)
        selection: list[Any] = []
        for each in self.datapipe:
            if len(selection) < self.buffer_size:
                selection.append(each)
                continue
            place = source.randrange(len(selection))
            yield selection[place]
            selection[place] = each
        source.shuffle(selection)
        yield from selection

    def __len__(self) -> int:
        return _length(self.datapipe)


iter = SimpleNamespace(
    Batcher=_Batcher,
    Collator=_Collator,
    Concater=_Concater,
    Filter=_Filter,
    IterableWrapper=_IterableWrapper,
    Mapper=_Mapper,
    Shuffler=_Shuffler,
    UnBatcher=_UnBatcher,
    Zipper=_Zipper,
)
combinatorics = SimpleNamespace(ShufflerIterDataPipe=_Shuffler)


def _pipes(pipe: Any) -> Iterator[Any]:
    """Return a pipe and those that it takes its elements from."""
    seen: set[int] = set()
    rest = [pipe]
    while rest:
        each = rest.pop()
        if isinstance(each, (list, tuple)):
            rest += each
        elif isinstance(each, (IterDataPipe, MapDataPipe)) and id(each) not in seen:
            seen.add(id(each))
            rest += vars(each).values()
            yield each


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turn the random order of all pipes with `set_shuffle` on or off; return the pipe.

    Args:
        datapipe: the last pipe.
        shuffle: None changes nothing; True adds `shuffle` with a warning if no pipe has it.

    Example:
        >>> from plait_torch._datapipes import apply_shuffle_settings, iter
        >>> pipe = iter.IterableWrapper(range(5)).shuffle().map(str)
        >>> list(apply_shuffle_settings(pipe, shuffle=False))
        ['0', '1', '2', '3', '4']
    """
    if shuffle is None:
        return datapipe
    shufflers = [each for each in _pipes(datapipe) if hasattr(each, "set_shuffle")]
    if shuffle and not shufflers:
        warn(
            "apply_shuffle_settings: no pipe shuffles; one is added at the end, with the default "
            "buffer"
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for each in shufflers:
        each.set_shuffle(shuffle)
    return datapipe
