"""A process that dies while it is called. The last file of the folder: its victim is gone."""

from __future__ import annotations

import pytest
import remote_functions as there

from plait_ray import rpc


@pytest.mark.usefixtures("world")
def test_a_callee_that_dies_is_named() -> None:
    reference = rpc.remote("victim", there.Counter)
    waiting = rpc.rpc_async("victim", there.sleep, args=(300.0,), timeout=0)
    with pytest.raises(rpc.WorkerLost, match=r"'victim' \(rank 3, host .*, pid \d+\) died or left"):
        rpc.rpc_sync("victim", there.stop_process)
    with pytest.raises(rpc.WorkerLost, match="the call of sleep"):
        waiting.wait()
    with pytest.raises(rpc.WorkerLost, match="victim"):
        rpc.rpc_sync("victim", min, args=(1, 2))
    with pytest.raises(rpc.WorkerLost, match="victim"):
        reference.to_here()
    assert rpc.rpc_sync("test", there.product, args=(2, 3)) == 6  # this process serves on
    # the others wait in `shutdown`: they leave because of the loss, and may be named beside it
    with pytest.raises(rpc.WorkerLost, match=r"'victim' \(rank 3, .*died or left"):
        rpc.shutdown()
    options = rpc.TensorPipeRpcBackendOptions(init_method="tcp://127.0.0.1:2")
    rpc.init_rpc("again", rank=0, world_size=1, rpc_backend_options=options)
    assert rpc.rpc_sync("again", there.product, args=(2, 3)) == 6
