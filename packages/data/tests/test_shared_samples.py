"""Datasets in shared memory. `PLAIT_DATA_ITEMS` sets the number of items in the test of memory."""

import os
import pickle
import random

import numpy as np
import pytest
import worker_datasets
from worker_datasets import Holder, Indexed

from plait_data import DataLoader
from plait_data._workers import _job
from plait_data._workers._columns import column_of
from plait_data._workers._containers import LEAST, SharedDict, SharedList, SharedTuple, shared

MANY = LEAST + 7
ITEMS = int(os.environ.get("PLAIT_DATA_ITEMS", "60000"))

LISTS = {
    "ints": list(range(-5, MANY)),
    "floats": [i / 3 for i in range(MANY)],
    "bools": [i % 3 == 0 for i in range(MANY)],
    "ascii": [f"file {i}" for i in range(MANY)],
    "text": [f"fïle {i} \udc80" for i in range(MANY)],
    "bytes": [bytes([i % 256]) * (i % 5) for i in range(MANY)],
    "big ints": [10**30 + i for i in range(MANY)],
    "pairs": [(f"p{i}", i) for i in range(MANY)],
    "nested": [((i, str(i)), i / 2) for i in range(MANY)],
    "uneven": [tuple(range(i % 4)) for i in range(MANY)],
    "mixed": [i if i % 2 else str(i) for i in range(MANY)],
    "annotations": [{"id": i, "boxes": [[1, i], None]} for i in range(MANY)],
    "some None": [None if i % 2 else i for i in range(MANY)],
}


def through_pickle(value):
    """The value that a worker reads, from its own copy of the bytes."""
    return pickle.loads(pickle.dumps(shared(value), 5))


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("kind", [list, tuple])
def test_items_are_the_same(name, kind):
    value = kind(LISTS[name])
    got = through_pickle(value)
    assert type(got) is (SharedList if kind is list else SharedTuple)
    assert len(got) == len(value)
    assert list(got) == list(value)
    assert [type(item) for item in got] == [type(item) for item in value]
    assert got == value
    assert got != value[:-1]
    assert got[17] == value[17]
    assert got[-1] == value[-1]
    assert got[np.int64(5)] == value[5]
    assert got[5:9000:700] == value[5:9000:700]
    assert type(got[:2]) is kind
    assert value[3] in got
    for index in (len(value), -len(value) - 1):
        with pytest.raises(IndexError, match="index must be in"):
            got[index]


def test_lists_can_be_written_to():
    value = LISTS["pairs"]
    got, expected = through_pickle(value), list(value)
    for items in (got, expected):
        items[3] = None
        items.append("end")
        items.extend([1, 2])
        items += [3]
        del items[0]
        items.insert(1, "x")
        items.pop()
        items.remove("x")
        items.reverse()
    assert list(got) == expected
    assert len(got) == len(expected)
    ints = through_pickle(LISTS["ints"])
    ints.sort(reverse=True)
    assert ints[0] == MANY - 1
    assert (ints + [1])[-2:] == [-5, 1]  # noqa: RUF005
    assert np.asarray(through_pickle(LISTS["ints"])).tolist() == LISTS["ints"]
    assert hash(through_pickle(tuple(LISTS["ints"]))) == hash(tuple(LISTS["ints"]))


def test_arrays_of_many_shapes():
    arrays = [np.full((i % 3, 2), i, np.int16) for i in range(MANY)]
    got = through_pickle(arrays)
    assert all(
        np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(got, arrays, strict=True)
    )


@pytest.mark.parametrize(
    "keys",
    [lambda i: f"kéy {i}", lambda i: i * 3 - 50, lambda i: b"%d" % i],
    ids=["text", "ints", "bytes"],
)
def test_dicts(keys):
    value = {keys(i): ("v", i) for i in range(MANY)}
    got = through_pickle(value)
    assert type(got) is SharedDict
    assert dict(got) == value
    assert list(got) == list(value)
    assert got == value
    assert got[keys(77)] == ("v", 77)
    assert got.get("missing") is None
    assert "missing" not in got
    assert -51 not in got
    with pytest.raises(KeyError):
        got[None]
    got["new"] = 1
    del got[keys(0)]
    del value[keys(0)]
    assert dict(got) == {**value, "new": 1}


def test_int_keys_are_found_like_in_a_dict():
    got = through_pickle({i: i for i in range(MANY)})
    assert (got[True], got[2.0], got[np.int32(7)]) == (1, 2, 7)
    assert 2.5 not in got
    assert 2**70 not in got


@pytest.mark.parametrize(
    "value",
    [
        [None] * MANY,  # to be filled
        [object()] * MANY,
        [1] * (LEAST - 1),
        {i if i % 2 else str(i): 0 for i in range(MANY)},
        {i: object() for i in range(MANY)},
    ],
)
def test_what_stays_as_it_is(value):
    assert shared(value) is None


def test_equal_hashes_are_told_apart():
    draw = random.Random(0)
    names = [draw.randbytes(12).hex() for _ in range(200_000)]  # some pairs of equal checksums
    got = shared({name: i for i, name in enumerate(names)})
    hashes = got._hashes.tolist()
    assert len(set(hashes)) < len(hashes)
    assert all(got[name] == i for i, name in enumerate(names))


def load(value):
    """Pack and unpack a value as a dataset's, in this process."""
    job = _job.Job(value, None, None, False, True, 1, False, True, None)
    segment = _job.Segment(job)
    with segment.file as file:
        return _job.load(file.fileno(), segment.table_at, segment.entries).dataset


def test_large_parts_are_views_of_one_mapping():
    array = np.arange(100_000.0)
    fixed = np.ones(5000)
    fixed.setflags(write=False)
    value = {
        "array": array,
        "again": array,
        "transposed": array.reshape(100, -1).T[::2],
        "fixed": fixed,
        "objects": np.array([{"a": 1}, None, "x"] * 5000, dtype=object).reshape(3, -1),
        "names": LISTS["ascii"],
        "twice": [LISTS["ascii"]],
    }
    got = load(value)
    assert got["array"] is got["again"]
    assert not got["array"].flags.owndata
    assert np.array_equal(got["array"], array)
    assert np.array_equal(got["transposed"], value["transposed"])
    assert not got["transposed"].flags.owndata
    assert not got["fixed"].flags.writeable
    assert (got["objects"] == value["objects"]).all()
    assert got["names"] is got["twice"][0]
    assert not got["names"]._column.content.flags.owndata
    got["array"][0] = -1  # this worker's own page
    assert array[0] == 0


def test_mapped_files_are_mapped_again(tmp_path):
    file = np.memmap(tmp_path / "numbers", np.int32, "w+", shape=(50, 100))
    file[:] = np.arange(5000).reshape(50, 100)
    file.flush()
    fixed = np.memmap(tmp_path / "numbers", np.int32, "r", shape=(50, 100))
    got = load({"fixed": fixed, "part": fixed[3:, 2], "open": file})
    assert type(got["fixed"]) is np.memmap
    assert str(got["fixed"].filename) == str(fixed.filename)
    assert np.array_equal(got["part"], fixed[3:, 2])
    assert np.array_equal(got["open"], file)


def test_tensors_of_another_library_share_memory():
    import array_library

    tensor = array_library.Tensor(np.arange(5000.0))
    got = load([tensor])[0]
    assert type(got) is array_library.Tensor
    assert not got.values.flags.owndata
    assert got.values.tolist() == tensor.values.tolist()


def private_megabytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file.readlines()[1:])
    return int(fields["Private_Dirty"].split()[0]) / 1024


@pytest.mark.parametrize("workers", [1, 2])
def test_private_memory_does_not_grow_with_the_items(workers):
    data = Indexed(ITEMS)  # copies of what they touch would be seen: 20 MB of Python objects
    loader = DataLoader(data, 500, num_workers=workers, shuffle=True, generator=0)
    before, after = {}, {}  # a worker's memory with its first batch, and with its last but few
    calls = 0
    batches = iter(loader)
    for count, (_, label, _, pid) in enumerate(batches):
        calls += len(label)
        first = int(pid[0])
        if first not in before:
            before[first] = private_megabytes(first)
        if count == ITEMS // 500 - 5:  # all still live
            after = {pid: private_megabytes(pid) for pid in batches._pool.pids}
    assert calls == ITEMS
    assert len(after) == workers
    assert all(after[pid] - before[pid] < 5 for pid in after), (before, after)


def test_a_worker_sees_shared_containers():
    references = [LISTS["text"], tuple(LISTS["ints"]), {f"{i}": i for i in range(MANY)}, [1, 2]]
    options = {"batch_size": None, "num_workers": 1}
    (names, _) = DataLoader(Holder(references, worker_datasets.kinds), **options)
    assert names == ["SharedList", "SharedTuple", "SharedDict", "list"]
    (item, _) = DataLoader(Holder(references, worker_datasets.last_items), **options)
    assert item == [LISTS["text"][-1], MANY - 1, str(MANY - 1)]


def test_column_of_values():
    assert column_of([1, 2]).get(1) == 2
    assert column_of([object()]) is None
    assert column_of(["a", None]).get(1) is None
