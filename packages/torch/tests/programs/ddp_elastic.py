"""A script for torchrun: everything from the environment, snapshots, resumed by a second start."""

import json
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def ddp_setup():
    init_process_group(backend="gloo")


class Trainer:
    def __init__(self, model, train_data, optimizer, save_every, snapshot_path):
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.train_data = train_data
        self.optimizer = optimizer
        self.save_every = save_every
        self.epochs_run = 0
        self.snapshot_path = snapshot_path
        self.model = model
        if os.path.exists(snapshot_path):
            self._load_snapshot(snapshot_path)
        self.model = DDP(self.model)

    def _load_snapshot(self, snapshot_path):
        snapshot = torch.load(snapshot_path, map_location="cpu")
        self.model.load_state_dict(snapshot["MODEL_STATE"])
        self.optimizer.load_state_dict(snapshot["OPTIMIZER"])
        self.epochs_run = snapshot["EPOCHS_RUN"]
        if self.global_rank == 0:
            print(f"Resuming training from snapshot at Epoch {self.epochs_run}")

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(source), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch):
        self.train_data.sampler.set_epoch(epoch)
        losses = [self._run_batch(source, targets) for source, targets in self.train_data]
        mean = torch.tensor([sum(losses), len(losses)])
        dist.all_reduce(mean)
        if self.global_rank == 0:
            steps = len(self.train_data)
            print(f"Epoch {epoch} | Steps: {steps} | loss {(mean[0] / mean[1]).item():.4f}")

    def _save_snapshot(self, epoch):
        snapshot = {
            "MODEL_STATE": self.model.module.state_dict(),
            "OPTIMIZER": self.optimizer.state_dict(),
            "EPOCHS_RUN": epoch + 1,
        }
        torch.save(snapshot, self.snapshot_path)

    def train(self, max_epochs):
        for epoch in range(self.epochs_run, max_epochs):
            self._run_epoch(epoch)
            if self.local_rank == 0 and (epoch + 1) % self.save_every == 0:
                self._save_snapshot(epoch)


def load_train_objs():
    x = torch.sin(torch.arange(640, dtype=torch.float32)).view(32, 20)
    y = torch.cos(torch.arange(32, dtype=torch.float32)).view(32, 1)
    model = torch.nn.Linear(20, 1)
    with torch.no_grad():
        model.weight.copy_(torch.linspace(-1, 1, 20).view(1, 20))
        model.bias.fill_(0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return TensorDataset(x, y), model, optimizer


@record
def main(total_epochs, save_every, snapshot_path):
    ddp_setup()
    dataset, model, optimizer = load_train_objs()
    loader = DataLoader(
        dataset,
        batch_size=4,
        pin_memory=True,
        shuffle=False,
        sampler=DistributedSampler(dataset, shuffle=False),
    )
    Trainer(model, loader, optimizer, save_every, snapshot_path).train(total_epochs)
    sys.stdout.flush()
    dist.barrier()
    if dist.get_rank() == 1:
        keys = ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_NAME")
        print(json.dumps({key: os.environ[key] for key in keys}), dist.is_torchelastic_launched())
    destroy_process_group()


def launch(*arguments):
    # torchrun, under its module's name; the interpreter's own options and `-m` come before it
    before = sys.orig_argv[1 : sys.orig_argv.index(sys.argv[0])]
    command = [sys.executable, *before, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*command, "--nproc_per_node=2", os.path.abspath(__file__), *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout, end="")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "snapshot.pt")
            launch(2, 2, path)
            launch(4, 2, path)
