"""`torch.utils.data`: the map of collations, pipes, and parts of the loader."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

# what a program may ask for first, and nothing else, as an expression after `import torch`
FIRST = {
    "torch.utils.data.DataLoader([5])": "",
    "DataLoader([5])": "from torch.utils.data import DataLoader",
    "dataloader.DataLoader([5])": "from torch.utils.data import dataloader",
    "Iterator(DataLoader([5]))": "from torch.utils.data.dataloader import "
    "_SingleProcessDataLoaderIter as Iterator, DataLoader",
    "DataLoader(Numbers())": "from torch.utils.data import DataLoader, IterableDataset\n"
    "class Numbers(IterableDataset):\n"
    "    def __iter__(self): yield 5",
    "[default_collate([5])]": "from torch.utils.data import default_collate",
    "[collate([5])]": "from torch.utils.data._utils.collate import default_collate as collate",
    "DataLoader([5], num_workers=1)": "from torch.utils.data import DataLoader",
}


@pytest.mark.parametrize("first", FIRST)
def test_batches_are_tensors_for_any_order_of_imports(first: str) -> None:
    code = f"import plait_torch; plait_torch.install(); import torch\n{FIRST[first]}\n"
    code += f"for batch in {first}: print(type(batch).__name__, batch.tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "Tensor [5]\n", done.stdout + done.stderr


def test_collations_by_type(torch: Any) -> None:
    from torch.utils.data._utils.collate import collate, default_collate_fn_map

    class Box:
        def __init__(self, inside: int) -> None:
            self.inside = inside

    def boxes(batch: list[Box], *, collate_fn_map: Any = None) -> int:
        assert collate_fn_map is default_collate_fn_map
        return sum(box.inside for box in batch)

    from plait_data import collate as ours

    try:
        default_collate_fn_map.update({Box: boxes})
        assert default_collate_fn_map[Box] is boxes
        assert default_collate_fn_map.setdefault(Box) is boxes
        samples = [{"box": Box(1), "x": 1.0}, {"box": Box(2), "x": 2.0}]
        result = torch.utils.data.default_collate(samples)
        assert result["box"] == 3 and result["x"].tolist() == [1.0, 2.0]
        loader = torch.utils.data.DataLoader([Box(5), Box(6)], batch_size=2)
        assert list(loader) == [11]
        assert collate([Box(1), Box(7)], collate_fn_map=default_collate_fn_map) == 8
    finally:
        del default_collate_fn_map[Box]
        del ours._registered[Box]

    Pair = namedtuple("Pair", "a b")
    batch = [Pair(torch.ones(2), ("t", 1)), Pair(torch.zeros(2), ("u", 2))]
    result = collate(batch, collate_fn_map=default_collate_fn_map)
    assert type(result) is Pair and result.a.shape == (2, 2) and result.b[0] == ["t", "u"]
    assert result.b[1].tolist() == [1, 2] and result.b[1].dtype is torch.int64
    for values, dtype in (
        ([np.float32(1), np.float32(2)], torch.float32),
        ([np.ones(2, np.int8), np.zeros(2, np.int8)], torch.int8),
        ([0.5, 1.5], torch.float64),
    ):
        assert collate(values, collate_fn_map=default_collate_fn_map).dtype is dtype
    with pytest.raises(RuntimeError, match="one length"):
        collate([[1], [1, 2]], collate_fn_map=default_collate_fn_map)
    with pytest.raises(TypeError, match=r"default_collate: .*found .*object"):
        collate([object()], collate_fn_map=default_collate_fn_map)


def test_pipes_of_iterables(torch: Any) -> None:
    from torch.utils.data import IterDataPipe, functional_datapipe
    from torch.utils.data.datapipes.iter import IterableWrapper, Mapper

    source = IterableWrapper(range(7))
    assert list(source.map(lambda x: x * 2).filter(lambda x: x > 5)) == [6, 8, 10, 12]
    assert list(Mapper(source, str)) == list(source.map(str)) and len(source.map(str)) == 7
    batched = source.batch(3)
    assert list(batched) == [[0, 1, 2], [3, 4, 5], [6]] and len(batched) == 3
    assert len(list(source.batch(3, drop_last=True))) == len(source.batch(3, drop_last=True)) == 2
    assert list(batched.unbatch()) == list(range(7))
    assert [part.tolist() for part in source.batch(4).collate()] == [[0, 1, 2, 3], [4, 5, 6]]
    assert (
        list(source.concat(source)) == [*range(7), *range(7)] and len(source.concat(source)) == 14
    )
    assert list(source.zip(batched)) == [(0, [0, 1, 2]), (1, [3, 4, 5]), (2, [6])]
    for size in (1, 3, 100):
        shuffled = source.shuffle(buffer_size=size)
        assert sorted(shuffled) == list(range(7)) and len(shuffled) == 7
    many = IterableWrapper(range(50)).shuffle()
    assert list(many.set_seed(1)) == list(many.set_seed(1)) != list(many.set_seed(2))
    assert list(many.set_shuffle(False)) == list(range(50))
    torch.manual_seed(0)
    first = list(many.set_shuffle())
    torch.manual_seed(0)
    assert list(many) == first != list(range(50))
    loader = torch.utils.data.DataLoader(source.map(float), batch_size=4)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6]]
    assert isinstance(source, torch.utils.data.IterableDataset) and "shuffle" in dir(source)

    @functional_datapipe("negated_for_test")
    class Negated(IterDataPipe):
        def __init__(self, source: Any) -> None:
            self.source = source

        def __iter__(self) -> Any:
            return (-each for each in self.source)

    try:
        assert list(source.negated_for_test())[:3] == [0, -1, -2]
        with pytest.raises(Exception, match="there already"):
            functional_datapipe("negated_for_test")(Negated)
        IterDataPipe.register_function("first_for_test", lambda pipe: next(iter(pipe)))
        assert source.first_for_test() == 0
    finally:
        for name in ("negated_for_test", "first_for_test"):
            IterDataPipe.functions.pop(name, None)
    with pytest.raises(AttributeError, match="negated_for_test"):
        _ = source.negated_for_test
    with pytest.raises(TypeError, match="valid length"):
        len(source.filter(bool).map(str))
    for wrong in (lambda: source.batch(0), lambda: source.shuffle(buffer_size=0)):
        with pytest.raises(ValueError, match="positive"):
            wrong()
    for missing in (lambda: source.map(str, input_col=1), lambda: source.unbatch(-1)):
        with pytest.raises(NotImplementedError):
            missing()
    with pytest.raises(TypeError, match="is required"):
        functional_datapipe("x")(int)
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterDataPipe())


def test_pipes_with_an_index(torch: Any) -> None:
    from torch.utils.data import MapDataPipe, functional_datapipe

    @functional_datapipe("doubled")
    class Doubled(MapDataPipe):
        def __init__(self, source: Any) -> None:
            self.source = source

        def __getitem__(self, index: Any) -> Any:
            return 2 * self.source[index]

    assert Doubled([1, 2]).doubled()[1] == 8
    del MapDataPipe.functions["doubled"]
    with pytest.raises(NotImplementedError, match="__getitem__"):
        _ = MapDataPipe()[0]
    with pytest.raises(ImportError, match="datapipes"):
        importlib.import_module("torch.utils.data.datapipes.map")


def test_parts_of_the_loader(torch: Any) -> None:
    from torch.utils.data._utils.pin_memory import pin_memory
    from torch.utils.data._utils.worker import WorkerInfo, get_worker_info
    from torch.utils.data.datapipes._decorator import (
        argument_validation,
        guaranteed_datapipes_determinism,
        non_deterministic,
    )

    assert get_worker_info() is None and WorkerInfo is torch.utils.data.WorkerInfo
    data = {"x": [torch.ones(1), "text"]}
    assert pin_memory(data) == data and torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL == 5.0
    assert argument_validation(len) is len and non_deterministic(int) is int
    assert non_deterministic(len)(int) is int
    with guaranteed_datapipes_determinism():
        pass


def test_a_replaced_step_of_iterators_and_workers(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

    plain = _BaseDataLoaderIter._next_index
    monkeypatch.setattr(_BaseDataLoaderIter, "_next_index", lambda self: plain(self)[::-1])
    assert list(DataLoader([1, 2], 2, collate_fn=list)) == [[2, 1]]
    loader = DataLoader([1, 2], 2, collate_fn=list, num_workers=1)
    with pytest.warns(UserWarning, match="which loaders with workers do not call"):
        assert list(loader) == [[1, 2]]
    monkeypatch.undo()
    assert list(loader) == list(DataLoader([1, 2], 2, collate_fn=list)) == [[1, 2]]


def test_a_replaced_step_of_iterators_of_one_kind(torch: Any) -> None:
    from torch.utils.data import dataloader

    several = dataloader.DataLoader([1, 2], 2, collate_fn=list, num_workers=1)
    plain = dataloader.DataLoader([1, 2], 2, collate_fn=list)
    for step in ("__next__", "_try_get_data"):  # inherited, or a step that plait has not
        setattr(dataloader._MultiProcessingDataLoaderIter, step, lambda self: [3])
        with pytest.warns(UserWarning, match="which loaders with workers do not call"):
            assert list(several) == [[1, 2]]
        assert list(plain) == [[1, 2]]
        delattr(dataloader._MultiProcessingDataLoaderIter, step)
    dataloader._SingleProcessDataLoaderIter._next_data = lambda self: self._next_index()
    try:
        assert list(plain) == [[0, 1]] and list(several) == [[1, 2]]
    finally:
        del dataloader._SingleProcessDataLoaderIter._next_data
    assert list(plain) == list(several) == [[1, 2]]


def test_hooks_of_all_modules_as_dicts(torch: Any) -> None:
    from torch.nn.modules import module

    hooks = module._global_parameter_registration_hooks
    assert not hooks and not module._global_forward_hooks and len(hooks) == 0
    seen = []

    def note(owner: Any, name: str, value: Any) -> None:
        seen.append(name)

    handle = module.register_module_parameter_registration_hook(note)
    assert list(hooks.values()) == [note] and hooks[handle.id] is note
    torch.nn.Linear(1, 1)
    assert seen == ["weight", "bias"]
    handle.remove()
    assert not hooks
    handle = module.register_module_forward_hook(lambda *args: None, always_call=True)
    assert dict(module._global_forward_hooks_always_called) == {handle.id: True}
    assert not module._global_forward_hooks_with_kwargs and len(module._global_forward_hooks) == 1
    handle.remove()

    calls = []
    module._global_forward_pre_hooks[10**9] = lambda owner, args: calls.append(type(owner).__name__)
    try:
        torch.nn.Linear(1, 1)(torch.ones(1))
        assert calls == ["Linear"]
    finally:
        del module._global_forward_pre_hooks[10**9]
    torch.nn.Linear(1, 1)(torch.ones(1))
    assert calls == ["Linear"]
    for wrong in (hooks, module._global_forward_hooks_with_kwargs):
        with pytest.raises(KeyError):
            _ = wrong[3]
    with pytest.raises(KeyError):
        del hooks[3]


class _Imports:
    """Samples that say which modules their worker imported for the sample."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        before = set(sys.modules)
        names = sys.modules["torch"]
        image = names.from_numpy(np.zeros((3, 4), np.uint8)).float().div(255).unsqueeze(0)
        sys.modules["torch.nn.functional"].relu(names.stack([image, image]))
        return len({name for name in set(sys.modules) - before if name.startswith("plait")})


def test_forked_workers_find_the_names_of_the_facade_imported() -> None:
    program = (
        "import sys; import numpy as np; import torch, torch.nn.functional\n"
        f"{inspect.getsource(_Imports)}\n"
        "for batch in torch.utils.data.DataLoader(_Imports(), 2, num_workers=1):\n"
        "    assert batch.tolist() == [0, 0], batch\n"
    )
    run = [sys.executable, "-c", f"import plait_torch; plait_torch.install(); exec({program!r})"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


class _Failing:
    """A dataset whose samples raise an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        raise self.error


class _Two(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first, second)


def test_errors_of_workers_have_pytorchs_text(torch: Any) -> None:
    for error, kind, name in (
        (KeyError("missing"), KeyError, "KeyError"),
        (ValueError("wrong"), ValueError, "ValueError"),
        (_Two("a", "b"), RuntimeError, "_Two"),  # its class takes two arguments
    ):
        loader = torch.utils.data.DataLoader(_Failing(error), num_workers=1)
        with pytest.raises(kind) as caught:
            list(loader)
        text = str(caught.value)
        begin = f"Caught {name} in DataLoader worker process 0.\nOriginal Traceback (most recent"
        assert type(caught.value) is kind and text.startswith(begin) and "\n  File " in text
        assert text.splitlines()[-1].rpartition(".")[2] == f"{name}: {error}"
        assert caught.value.__cause__ is None
