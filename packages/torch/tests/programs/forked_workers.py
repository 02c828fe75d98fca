"""Workers of a loader are forks: they have the settings that the program made before."""

import json
import multiprocessing
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

READERS = {}
SETTING = "of the module"


class Reads(Dataset):
    """What a worker sees of a program."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        info = get_worker_info()
        return {
            "dtype": str(torch.zeros(1).dtype),
            "setting": SETTING,
            "reader": READERS["number"](index),
            "patched": json.dumps(index),
            "flag": torch.backends.cudnn.benchmark,
            "environment": os.environ.get("OF_THE_PROGRAM"),
            "path": "/of/the/program" in sys.path,
            "same process": os.getpid() == PARENT,
            "worker": info.id,
            "threads": torch.get_num_threads(),
            "daemon": multiprocessing.current_process().daemon,
        }


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, 7, info.num_workers))


class Fails(Reads):
    def __getitem__(self, index):
        if index == 5:
            raise KeyError("sample 5")
        return torch.full((2,), index)


class Ends(Reads):
    def __getitem__(self, index):
        if index == 5:
            os._exit(3)
        return torch.full((2,), index)


PARENT = os.getpid()
if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.backends.cudnn.benchmark = True
    SETTING = "of the program"
    READERS["number"] = lambda index: index * index  # cannot be pickled
    json.dumps = lambda value: f"patched {value}"
    os.environ["OF_THE_PROGRAM"] = "yes"
    sys.path.append("/of/the/program")
    for workers in (1, 2):
        for _ in range(2):
            for sample in DataLoader(Reads(), batch_size=None, num_workers=workers):
                print(workers, sample)
    print(sorted(DataLoader(Stream(), batch_size=None, num_workers=2)))

    def prepare(worker):
        READERS["number"] = lambda index: f"reader {worker} of {index}"

    for sample in DataLoader(Reads(), None, num_workers=2, worker_init_fn=prepare):
        print(sample["reader"])
    print(READERS["number"](3))
    loader = DataLoader(Reads(), None, num_workers=2, persistent_workers=True)
    SETTING = "before the workers"
    print({sample["setting"] for sample in loader})
    SETTING = "after the workers"
    print({sample["setting"] for sample in loader})

    for dataset in (Fails(), Ends()):
        seen = []
        try:
            for batch in DataLoader(dataset, batch_size=2, num_workers=2):
                seen += batch[:, 0].tolist()
        except (KeyError, RuntimeError) as error:
            print(seen in ([], [0, 1], [0, 1, 2, 3]), isinstance(error, (KeyError, RuntimeError)))
