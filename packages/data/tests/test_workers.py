import collections
import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from multiprocessing import forkserver, resource_tracker

import array_library
import numpy as np
import pytest
import worker_datasets
from worker_datasets import Infos, Keeper, Mixed, Numbers, Sized, Uneven

import plait_data
from plait_data import DataLoader, TensorDataset, WorkerInfo, get_worker_info
from plait_data._default_context import set_default_context
from plait_data._workers import _member, _slot_holders

CONTEXTS = [None, "thread", "fork"]


def plain(value):
    """A batch as nested lists, with the types of its parts."""
    if isinstance(value, np.ndarray):
        return ("array", str(value.dtype), value.shape, value.tolist())
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, worker_datasets.Record):
        return ("Record", plain(value.image), plain(value.label))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(part) for part in value])
    return value


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("batch_size", [None, 7])
def test_batches_are_those_of_the_calling_process(context, batch_size):
    data = Mixed()
    options = {"batch_size": batch_size, "shuffle": True, "generator": 5}
    expected = [plain(batch) for batch in DataLoader(data, **options)]
    loader = DataLoader(data, num_workers=2, multiprocessing_context=context, **options)
    assert [plain(batch) for batch in loader] == expected
    assert len(loader) == len(expected)


@pytest.mark.parametrize("name", ["spawn", "forkserver"])
def test_contexts_of_the_standard_module(name):
    context = multiprocessing.get_context(name)
    loader = DataLoader(TensorDataset(np.arange(6)), 2, num_workers=1)
    loader.multiprocessing_context = context
    assert [x.tolist() for (x,) in loader] == [[0, 1], [2, 3], [4, 5]]
    forkserver._forkserver._stop()  # processes that the standard module leaves running
    resource_tracker._resource_tracker._stop()


def test_arrays_are_views_that_can_be_written_and_slots_come_back():
    loader = DataLoader(Mixed(200), batch_size=2, num_workers=1, prefetch_factor=2)
    addresses = collections.Counter()
    for batch in loader:
        x = batch["pair"].x
        assert not x.flags.owndata
        x += 1
        addresses[x.__array_interface__["data"][0]] += 1
    assert sum(addresses.values()) == 100
    assert len(addresses) <= 24  # of three large arrays a batch, and four batches at a time


def test_all_batches_may_be_kept():
    batches = list(DataLoader(Mixed(120, 4000), batch_size=2, num_workers=2))
    gc.collect()
    assert [b["record"].label.tolist() for b in batches] == [[i, i + 1] for i in range(0, 120, 2)]
    for i, batch in enumerate(batches):
        assert batch["pair"].x[1, 0] == (2 * i + 1) * 4000


def test_what_a_collate_fn_keeps_is_not_overwritten():
    loader = DataLoader(
        Keeper(), 4, num_workers=1, collate_fn=worker_datasets.KeepFirst(), prefetch_factor=1
    )
    for i, (batch, least, greatest) in enumerate(loader):
        assert batch[0, 0] == 4 * i
        assert (least, greatest) == (0, 3)


def test_slots_of_many_sizes():
    widths = [
        *(int(1.3**i) for i in range(60)),
        *([100_000] * 10),
        0,
        1,
        *range(16_000, 17_000, 90),
    ]
    batches = list(DataLoader(Sized(widths), batch_size=1, num_workers=2))
    for index, (batch, width) in enumerate(zip(batches, widths, strict=True)):
        assert batch.shape == (1, width)
        assert (batch == index % 256).all()


def arena_of(batches):
    """The path of the shared memory of an iterator's only worker."""
    folder = f"/proc/{batches._pool.pids[0]}/fd"
    names = [os.path.join(folder, name) for name in os.listdir(folder)]
    return next(name for name in names if "plait-data-arena" in os.readlink(name))


def test_idle_memory_is_given_back():
    widths = [(10 + 3 * i) << 20 for i in range(20)]
    loader = DataLoader(Sized(widths), batch_size=1, num_workers=1, prefetch_factor=1)
    batches = iter(loader)
    pages = []
    for index, batch in enumerate(batches):
        assert batch.shape == (1, widths[index])
        assert batch[0, -1] == index
        del batch
        pages.append(os.stat(arena_of(batches)).st_blocks * 512)
    # The first slots of 5 MB are idle from then on; they must be released.
    assert max(pages) < sum(set(widths))


def test_streams_are_shared_out():
    for workers in (1, 2, 3):
        batches = list(DataLoader(Numbers(23), batch_size=4, num_workers=workers))
        numbers = [int(row[0]) for batch in batches for row in batch]
        assert sorted(numbers) == list(range(23))
        assert len({row[1] for batch in batches for row in batch}) == 23
    single = list(DataLoader(Numbers(5), batch_size=None, num_workers=2))
    assert [int(row[0]) for row in single] == [0, 1, 2, 3, 4]
    dropped = list(DataLoader(Numbers(23), batch_size=4, num_workers=2, drop_last=True))
    assert [len(batch) for batch in dropped] == [4, 4, 4, 4, 4]


@pytest.mark.parametrize("context", CONTEXTS)
def test_worker_info_and_init(context):
    loader = DataLoader(
        Infos(),
        batch_size=None,
        num_workers=2,
        worker_init_fn=worker_datasets.leave_a_mark,
        multiprocessing_context=context,
    )
    infos = list(loader)
    assert [info[:2] for info in infos] == [(i % 2, 2) for i in range(8)]
    assert all(info[2] for info in infos)
    if context != "thread":  # which take one dataset, and one mark, together
        assert [info[3] for info in infos] == [100, 101] * 4
        assert len({info[4] for info in infos} - {os.getpid()}) == 2
    else:
        assert {info[4] for info in infos} == {os.getpid()}
    assert get_worker_info() is None


def test_worker_info_is_frozen():
    info = WorkerInfo(0, 1, 2, None)
    with pytest.raises(AttributeError):
        info.id = 3


def test_persistent_workers_stay_and_end_with_the_loader():
    loader = DataLoader(
        Infos(), batch_size=None, num_workers=2, persistent_workers=True, shuffle=True, generator=0
    )
    processes = [{info[4] for info in loader} for _ in range(3)]
    assert processes[0] == processes[1] == processes[2]
    abandoned = iter(loader)
    next(abandoned)
    assert {info[4] for info in loader} == processes[0]
    with pytest.raises(RuntimeError, match="a later iteration of this loader"):
        next(abandoned)
    del loader, abandoned
    gc.collect()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in processes[0])


def test_without_persistence_each_epoch_has_its_own():
    loader = DataLoader(Infos(), batch_size=None, num_workers=1)
    first, second = ({info[4] for info in loader} for _ in range(2))
    assert first.isdisjoint(second)


@pytest.mark.parametrize("context", [None, "thread"])
@pytest.mark.parametrize("in_order", [True, False])
def test_order(context, in_order, tmp_path):
    options = {"batch_size": 1, "num_workers": 2, "multiprocessing_context": context}
    path, numbers = tmp_path / "go", []
    batches = iter(DataLoader(Uneven(path), in_order=in_order, **options))
    if in_order:
        path.touch()
    for x in batches:
        numbers.append(int(x[0]))
        path.touch()
    assert sorted(numbers) == list(range(12))
    assert numbers[0] == 0 if in_order else numbers[0] != 0
    assert numbers == list(range(12)) or not in_order


def test_the_converter_works_in_the_calling_process():
    plait_data.set_batch_converter(array_library.from_numpy)
    batch = next(iter(DataLoader(Mixed(), batch_size=3, num_workers=1)))
    assert isinstance(batch["pair"].x, array_library.Tensor)
    assert batch["pair"].x.values.base is not None  # of the slot, not a copy
    assert isinstance(batch["list"][0], array_library.Tensor)
    assert batch["text"] == ["sample 0", "sample 1", "sample 2"]
    (x,) = next(iter(DataLoader(TensorDataset(np.arange(4)), 2, num_workers=1)))
    assert isinstance(x, array_library.Tensor)
    options = {"batch_size": 3, "num_workers": 1, "convert": np.asarray}
    assert isinstance(next(iter(DataLoader(Mixed(), **options)))["pair"].x, np.ndarray)


def test_a_collate_fn_gets_the_converter_too():
    plait_data.set_batch_converter(array_library.from_numpy)
    for context in CONTEXTS:
        loader = DataLoader(
            [1, 2],
            num_workers=1,
            collate_fn=worker_datasets.kind_of_collated,
            multiprocessing_context=context,
        )
        assert list(loader) == ["Tensor", "Tensor"]


def test_tensors_of_another_library_arrive_as_such_without_a_copy():
    values = array_library.Tensor(np.arange(80_000.0).reshape(8, 10_000))
    (x,) = next(iter(DataLoader(TensorDataset(values), 4, num_workers=1)))
    assert type(x) is array_library.Tensor
    assert x.values.tolist() == values.values[:4].tolist()
    assert not x.values.flags.owndata
    (y,) = next(iter(DataLoader([(values[0],)], 1, num_workers=1)))
    assert type(y) is array_library.Tensor
    assert y.values.tolist() == [values.values[0].tolist()]


def test_large_messages_in_both_directions_do_not_lock_up():
    data = TensorDataset(np.arange(400_000))
    loader = DataLoader(data, 100_000, num_workers=2, prefetch_factor=8)
    assert sum(int(x.sum()) for (x,) in loader) == sum(range(400_000))
    texts = ["a" * 3000] * 640
    batches = list(DataLoader(texts, 64, num_workers=2, prefetch_factor=8))
    assert batches == [texts[:64]] * 10


def run(script, **options):
    code = textwrap.dedent(script)
    path = options.pop("folder") / "program.py"
    path.write_text(code)
    return subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=240, **options
    )


def test_the_main_module_of_a_process_that_spawn_started(tmp_path):
    done = run(
        """
        import multiprocessing
        from plait_data import DataLoader, Dataset
        class Item:
            def __init__(self, i):
                self.i = i
        def items(batch):
            return [Item(each.i + 10) for each in batch]
        class Data(Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, i):
                return Item(i)
        def work():
            loader = DataLoader(Data(), 2, num_workers=1, collate_fn=items)
            found = [each for batch in loader for each in batch]
            print([each.i for each in found], {type(each) is Item for each in found})
        if __name__ == "__main__":
            process = multiprocessing.get_context("spawn").Process(target=work)
            process.start()
            process.join()
        """,
        folder=tmp_path,
    )
    assert done.stdout == "[10, 11, 12, 13] {True}\n", done.stderr


def test_a_program_without_a_main_guard(tmp_path):
    done = run(
        """
        from dataclasses import dataclass
        import numpy as np
        from plait_data import DataLoader, Dataset
        print("main runs")
        BIG = np.arange(200_000.0)
        @dataclass
        class Point:
            x: object
            i: int
        class Oops(Exception):
            pass
        class Data(Dataset):
            def __len__(self):
                return 6
            def __getitem__(self, i):
                if i == 5:
                    raise Oops("five")
                return Point(BIG[i : i + 2], i)
        scale = 2
        loader = DataLoader(
            Data(), 2, num_workers=2, collate_fn=lambda s: [Point(p.x * scale, p.i) for p in s]
        )
        seen = []
        try:
            for points in loader:
                seen += [(type(p) is Point, p.x.tolist(), p.i) for p in points]
        except Oops as error:
            print(seen, type(error) is Oops, error, "worker" in str(error.__cause__))
        """,
        folder=tmp_path,
    )
    assert done.stderr == ""
    expected = [(True, [2.0 * i, 2.0 * i + 2], i) for i in range(4)]
    assert done.stdout == f"main runs\n{expected} True five True\n"


def test_without_cloudpickle_the_error_names_the_package(tmp_path):
    done = run(
        """
        import sys
        sys.modules["cloudpickle"] = None
        from plait_data import DataLoader
        print(next(iter(DataLoader([1, 2], num_workers=1))))
        try:
            iter(DataLoader([1, 2], num_workers=1, collate_fn=lambda samples: samples))
        except ModuleNotFoundError as error:
            print(error)
        """,
        folder=tmp_path,
    )
    assert done.stderr == ""
    assert "[1]" in done.stdout
    assert "pip install cloudpickle" in done.stdout


def test_what_cannot_be_sent_is_named():
    with pytest.raises(TypeError, match=r"can be pickled .*_thread.lock.*\"fork\" or \"thread\""):
        iter(DataLoader([threading.Lock()], num_workers=1))


def test_workers_import_no_more_than_they_need(tmp_path):
    done = run(
        """
        from plait_data import DataLoader
        import decimal
        modules = lambda samples: sorted(__import__("sys").modules)
        (names,) = DataLoader([0], num_workers=1, collate_fn=modules)
        print([n for n in ("multiprocessing", "decimal", "plait_core") if n in names])
        """,
        folder=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_threads_need_nothing_of_linux(tmp_path):
    done = run(
        """
        import os, sys
        del os.memfd_create
        sys.modules["fcntl"] = sys.modules["resource"] = None  # as on other systems
        from plait_data import DataLoader
        loader = DataLoader(range(3), num_workers=2, multiprocessing_context="thread")
        print([int(x[0]) for x in loader])
        try:
            iter(DataLoader(range(3), num_workers=2))
        except OSError as error:
            print(error)
        """,
        folder=tmp_path,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("[0, 1, 2]\n")
    assert "need Linux" in done.stdout


def test_arguments():
    with pytest.raises(ValueError, match="`prefetch_factor` must be a positive int"):
        DataLoader([1], num_workers=1, prefetch_factor=0)
    with pytest.raises(ValueError, match=r"`multiprocessing_context` must be None, .*got 'swapn'"):
        DataLoader([1], num_workers=1, multiprocessing_context="swapn")
    with pytest.raises(ValueError, match="`exact_globals` needs processes"):
        DataLoader([1], num_workers=1, multiprocessing_context="thread", exact_globals=True)
    with pytest.raises(TypeError, match="`multiprocessing_context` must be None, a name or a cont"):
        iter(DataLoader([1], num_workers=1, multiprocessing_context=5))
    with pytest.raises(ValueError, match=r"`num_workers` must be an int >= 0; got 1\.5"):
        DataLoader([1], num_workers=1.5)


def test_a_forked_child_leaves_the_workers_alone():
    batches = iter(DataLoader(Mixed(), batch_size=4, num_workers=1))
    references = [next(batches)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            references.clear()
            next(batches)
        except RuntimeError as error:
            status = 0 if "belongs to the process that made it" in str(error) else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert len(list(batches)) == 9
    assert references[0]["record"].label.tolist() == [0, 1, 2, 3]


def test_a_forked_child_keeps_the_batches_it_has_seen():
    before = len(os.listdir("/proc/self/fd"))
    go, started = os.pipe()
    answer, messages = os.pipe()
    loader = DataLoader(Sized([50_000] * 40), num_workers=1, persistent_workers=True)
    batches = iter(loader)
    batch = next(batches)
    expected = batch.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.read(go, 1)  # the parent has dropped it, and made all the others
        os.write(messages, b"1" if (batch == expected).all() else b"0")
        os._exit(0)
    del batch
    for _ in batches:
        pass
    os.write(started, b"x")
    assert os.read(answer, 1) == b"1"
    os.waitpid(child, 0)
    for _ in loader:
        pass
    assert not _slot_holders._children, "the child is gone, and with it what it held"
    loader = batches = _ = None
    gc.collect()
    for descriptor in (go, started, answer, messages):
        os.close(descriptor)
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_python_runs_in_the_parent_of_a_fork_where_no_batch_is_kept():
    """Python code would handle a signal, and an exception raised in a fork hook is lost."""
    assert list(DataLoader(Sized([50_000] * 4), num_workers=1))
    gc.collect()
    _slot_holders.collect()
    assert not _slot_holders._holds
    called = []
    sys.setprofile(lambda frame, *_: called.append(frame.f_code.co_filename))
    try:
        child = os.fork()
        if child == 0:
            os._exit(0)
    finally:
        sys.setprofile(None)
    os.waitpid(child, 0)
    assert not [name for name in called if "plait_data" in name]


def test_a_forked_child_cannot_iterate_with_its_parent_s_threads():
    batches = iter(DataLoader(Mixed(), 4, num_workers=1, multiprocessing_context="thread"))
    next(batches)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            next(batches)
        except RuntimeError as error:
            os._exit(0 if "belongs to the process that made it" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_local_classes_come_back_as_the_program_s_own():
    point = collections.namedtuple("point", "x")  # its name says nothing of where it was made

    class Record:
        pass

    class Broken(ValueError):
        pass

    class Local:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            if index == 2:
                raise Broken("no sample")
            return Record() if index else point(index)

    batches = iter(DataLoader(Local(), None, num_workers=1))
    assert type(next(batches)) is point
    assert type(next(batches)) is Record
    with pytest.raises(Broken, match="no sample"):
        next(batches)


def test_a_sample_that_cannot_be_sent_is_an_error_of_its_own():
    loader = DataLoader(range(2), None, num_workers=1, collate_fn=lambda _: threading.Lock())
    with pytest.raises(TypeError, match=r"cannot pickle '_thread.lock' object"):
        next(iter(loader))


def test_progress_bars_know_the_length():
    loader = DataLoader(range(10), batch_size=3, num_workers=1)
    assert len(loader) == len(list(loader)) == 4


def test_forked_workers_end_by_themselves(monkeypatch):
    """A worker that keeps the program's end of its connection never sees that it was closed."""
    killed = []
    monkeypatch.setattr(_member, "kill", killed.append)
    loader = DataLoader(TensorDataset(np.arange(40)), 2, num_workers=3)
    loader.multiprocessing_context = "fork"
    iterators = [iter(loader) for _ in range(2)]
    pools = [iterator._pool for iterator in iterators]
    members = [member for pool in pools for member in pool._members]
    for pool in pools:
        pool.close(60.0)
    assert [member.status for member in members] == [0] * 6
    assert not killed


def test_a_source_of_contexts_is_for_loaders_that_name_none():
    requests = []

    def source():
        requests.append(1)
        return multiprocessing.get_context("fork")

    before = set_default_context(source)
    try:
        data = TensorDataset(np.arange(4))
        data.lock = threading.Lock()  # cannot be pickled
        for context, count in ((None, 1), ("thread", 1), ("fork", 1), (None, 2)):
            loader = DataLoader(data, 2, num_workers=1, multiprocessing_context=context)
            assert [x.tolist() for (x,) in loader] == [[0, 1], [2, 3]]
            assert len(requests) == count
    finally:
        set_default_context(before)
