"""Remote calls in the style of PyTorch's tutorials: a model split over two workers, trained from a
third process, and a parameter server that updates in batches."""

import os
import socket
import threading

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn, optim
from torch.distributed.optim import DistributedOptimizer
from torch.distributed.rpc import RRef


def fill(module, scale):
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(scale * torch.sin(torch.arange(p.numel(), dtype=torch.float32) + i).view_as(p))
    return module


class Shard(nn.Module):
    def __init__(self, n_in, n_out, scale):
        super().__init__()
        self._lock = threading.Lock()
        self.layers = fill(nn.Sequential(nn.Linear(n_in, n_out), nn.Tanh()), scale)

    def forward(self, x_rref):
        x = x_rref.to_here()
        with self._lock:
            return self.layers(x)

    def parameter_rrefs(self):
        return [RRef(p) for p in self.parameters()]


class DistModel(nn.Module):
    def __init__(self, workers, split):
        super().__init__()
        self.split = split
        self.p1_rref = rpc.remote(workers[0], Shard, args=(6, 8, 0.3))
        self.p2_rref = rpc.remote(workers[1], Shard, args=(8, 2, 0.5))

    def forward(self, xs):
        futures = []
        for x in xs.split(self.split, dim=0):
            x_rref = RRef(x)
            y_rref = self.p1_rref.remote().forward(x_rref)
            z_future = self.p2_rref.rpc_async().forward(y_rref)
            futures.append(z_future)
        return torch.cat(torch.futures.wait_all(futures))

    def parameter_rrefs(self):
        remote_params = []
        remote_params.extend(self.p1_rref.remote().parameter_rrefs().to_here())
        remote_params.extend(self.p2_rref.remote().parameter_rrefs().to_here())
        return remote_params


class BatchServer:
    """Gives the model back when all trainers have sent their gradients."""

    def __init__(self, trainers):
        self.model = fill(nn.Linear(4, 1), 0.2)
        self.lock = threading.Lock()
        self.future_model = torch.futures.Future()
        self.trainers, self.received = trainers, 0
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def get_model(self):
        return [p.detach().clone() for p in self.model.parameters()]

    @staticmethod
    @rpc.functions.async_execution
    def update_and_fetch_model(server_rref, grads):
        self = server_rref.local_value()
        with self.lock:
            self.received += 1
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g
            fut = self.future_model
            if self.received == self.trainers:
                for p in self.model.parameters():
                    p.grad /= self.trainers
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=False)
                self.received = 0
                fut.set_result(self.get_model())
                self.future_model = torch.futures.Future()
        return fut


def run_trainer(server_rref, number):
    model = nn.Linear(4, 1)
    for p, value in zip(model.parameters(), server_rref.rpc_sync().get_model()):
        p.data.copy_(value)
    x = torch.cos(torch.arange(32, dtype=torch.float32) + number).view(8, 4)
    losses = []
    for _ in range(3):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        grads = torch.autograd.grad(loss, list(model.parameters()))
        new = rpc.rpc_sync(
            server_rref.owner(), BatchServer.update_and_fetch_model, args=(server_rref, grads)
        )
        with torch.no_grad():
            for p, value in zip(model.parameters(), new):
                p.copy_(value)
        losses.append(round(loss.item(), 4))
    return losses


def fails(x):
    raise ValueError(f"expected boom {x}")


def run_master():
    workers = ["worker1", "worker2"]
    print("result", rpc.rpc_sync("worker1", torch.add, args=(torch.ones(2), 3)).tolist())
    print(rpc.get_worker_info("worker2").id, rpc.get_worker_info().name)
    try:
        rpc.rpc_sync("worker2", fails, args=(1,))
    except ValueError as error:
        print("caught", "expected boom 1" in str(error))
    model = DistModel(workers, split=4)
    opt = DistributedOptimizer(optim.SGD, model.parameter_rrefs(), lr=0.2)
    x = torch.sin(torch.arange(72, dtype=torch.float32)).view(12, 6)
    target = torch.stack([x[:, 0], x[:, 1] * 0.5], 1)
    for step in range(4):
        with dist_autograd.context() as context_id:
            loss = nn.functional.mse_loss(model(x), target)
            dist_autograd.backward(context_id, [loss])
            opt.step(context_id)
        print(f"step {step} loss {loss.item():.4f}")
    with dist_autograd.context() as context_id:
        t1 = torch.full((2, 2), 2.0, requires_grad=True)
        t2 = torch.full((2, 2), 3.0, requires_grad=True)
        product = rpc.rpc_sync("worker1", torch.mul, args=(t1, t2))
        dist_autograd.backward(context_id, [(product + t1).sum()])
        grads = dist_autograd.get_gradients(context_id)
        print("grads", grads[t1].tolist(), grads[t2].tolist(), len(grads))
    server = RRef(BatchServer(2))
    futures = [rpc.rpc_async(name, run_trainer, args=(server, i)) for i, name in enumerate(workers)]
    for each in torch.futures.collect_all(futures).wait():
        print("losses", each.wait())


def run_worker(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=32, rpc_timeout=120)
    name = "master" if rank == 0 else f"worker{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world_size, rpc_backend_options=options)
    if rank == 0:
        run_master()
    rpc.shutdown()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    mp.spawn(run_worker, args=(3, port), nprocs=3, join=True)
