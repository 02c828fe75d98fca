"""What libraries replace in loaders, samplers and their iterators, and its effect."""

import itertools
import warnings

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

warnings.simplefilter("ignore")


class Numbers(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return 10 * index


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


class Repeats:
    """An order without an end, as timm's and YOLO's loaders have."""

    def __init__(self, order):
        self.order = order

    def __iter__(self):
        while True:
            yield from iter(self.order)


def batches(loader, most=5):
    first = itertools.islice(loader, most)
    return [batch.tolist() if isinstance(batch, torch.Tensor) else batch for batch in first]


def show(label, call):
    try:
        print(label, call())
    except Exception as error:
        kinds = [k for k in (ValueError, TypeError, NotImplementedError) if isinstance(error, k)]
        print(label, "refused", kinds[0].__name__ if kinds else type(error).__name__)


# ---- attributes of a loader that are replaced afterwards

BACKWARDS = [5, 4, 3, 2, 1, 0]
REPLACED = {
    "batch_sampler": [[3, 1], [2]],
    "sampler": BACKWARDS,
    "batch_size": 3,
    "drop_last": True,
    "dataset": list(range(100, 106)),
    "persistent_workers": True,
    "collate_fn": sum,
    "num_workers": 0,
    "generator": torch.Generator(),
    "worker_init_fn": print,
    "pin_memory": True,
}
WAYS = {
    "setattr": setattr,
    "object": object.__setattr__,
    "dict": lambda loader, name, value: loader.__dict__.__setitem__(name, value),
}


def flagged(loader, name, value):
    loader._DataLoader__initialized = False
    setattr(loader, name, value)
    loader._DataLoader__initialized = True


WAYS["flag"] = flagged
for options in ({"batch_size": 2}, {"batch_size": None}, {"batch_sampler": [[0, 1], [5]]}):
    for (way, put), (name, value) in itertools.product(WAYS.items(), REPLACED.items()):

        def replaced(options=options, put=put, name=name, value=value):
            loader = DataLoader(Numbers(), **options)
            list(loader)
            put(loader, name, value)
            return batches(loader), len(loader)

        show(f"{way} {name} {options}", replaced)


class Forever(DataLoader):
    """timm's MultiEpochsDataLoader, in short."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._DataLoader__initialized = False
        self.batch_sampler = Repeats(self.batch_sampler)
        self._DataLoader__initialized = True
        self.iterator = super().__iter__()

    def __len__(self):
        return len(self.batch_sampler.order)

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.iterator)


loader = Forever(Numbers(), batch_size=4)
print([batches(loader) for _ in range(3)])

# ---- private members that subclasses override

MEMBERS = {
    "_index_sampler": property(lambda self: [[4], [2, 0]]),
    "_auto_collation": property(lambda self: False),
    "__len__": lambda self: 77,
    "__iter__": lambda self: iter([1, 2]),
    "_get_iterator": lambda self: iter(["own"]),
    "collate_fn": staticmethod(sum),
}
for name, member in MEMBERS.items():
    kind = type("Own", (DataLoader,), {name: member})

    def overridden(kind=kind):
        loader = kind(Numbers(), batch_size=2)
        return batches(loader), len(loader)

    show(f"override {name}", overridden)

ITERATORS = {
    "_next_index": lambda self: [0, 0] if self._num_yielded < 2 else next(iter(())),
    "_next_data": lambda self: "data" if self._num_yielded < 3 else next(iter(())),
}
for name, member in ITERATORS.items():
    iterator = type("Own", (_SingleProcessDataLoaderIter,), {name: member})
    kind = type("OwnLoader", (DataLoader,), {"_get_iterator": lambda self, i=iterator: i(self)})
    show(f"iterator {name}", lambda kind=kind: batches(kind(Numbers(), batch_size=2)))

# ---- samplers, and their attributes


class Own(Sampler):
    def __init__(self, order):
        self.order = order

    def __iter__(self):
        return iter(self.order)

    def __len__(self):
        return len(self.order)


for base in (SequentialSampler, RandomSampler):
    kind = type("Own", (base,), {"__iter__": lambda self: iter([2, 1]), "__len__": lambda self: 2})
    loader = DataLoader(Numbers(), sampler=kind(Numbers()))
    show(f"subclass of {base.__name__}", lambda loader=loader: (batches(loader), len(loader)))

inner = BatchSampler(SequentialSampler(Numbers()), 2, False)
for name, value in {"sampler": BACKWARDS, "batch_size": 4, "drop_last": True}.items():
    loader = DataLoader(Numbers(), batch_sampler=inner)
    list(loader)
    setattr(inner, name, value)
    show(f"batch sampler's {name}", lambda loader=loader: (batches(loader), len(loader)))

several = RandomSampler(Numbers(), replacement=True, num_samples=4)
several.data_source = range(1)
print("data_source", list(several), len(several))
subset = SubsetRandomSampler([3])
subset.indices = [5]
print("indices", list(subset), len(subset))
weighted = WeightedRandomSampler([1.0, 0.0], 3)
weighted.num_samples = 2
print("num_samples", list(weighted), len(weighted))
weighted.weights = torch.tensor([0.0, 1.0])
print("weights", list(weighted))
for sampler in (
    RandomSampler(range(50)),
    SubsetRandomSampler(range(50)),
    WeightedRandomSampler([1.0] * 50, 50),
):
    orders = []
    for _ in range(2):
        sampler.generator = torch.Generator()
        sampler.generator.manual_seed(3)
        orders.append(list(sampler))
    print(type(sampler).__name__, "generator", orders[0] == orders[1])

# ---- streams

loader = DataLoader(Stream(), batch_size=2)
print(type(loader.sampler).__name__ in ("_InfiniteConstantSampler", "EndlessSampler"))
print(type(loader.batch_sampler).__name__, loader._auto_collation, loader._dataset_kind)
print(DataLoader(Numbers())._dataset_kind, DataLoader(Numbers(), batch_size=None)._auto_collation)
loader.collate_fn = tuple
print(batches(loader))


# ---- workers that are kept


def count(loader):
    return sum(len(batch) for batch in loader)


if __name__ == "__main__":
    loader = DataLoader(Numbers(), batch_size=2, num_workers=1, persistent_workers=True)
    print(loader._iterator, count(loader), loader._iterator is not None)
    loader._iterator._shutdown_workers()
    loader._iterator = None
    print(loader._iterator, count(loader))
