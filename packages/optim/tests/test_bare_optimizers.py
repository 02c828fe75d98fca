"""With plait-abi and NumPy alone: every optimizer steps, clips, saves, loads and averages."""

from __future__ import annotations

import os
import subprocess
import sys

BARE = """
import copy, sys
for name in ("plait_core", "plait_autograd", "plait_ops", "torch"):
    sys.modules[name] = None  # importing it is an error
import numpy as np
import plait_optim as optim

optimizers = [getattr(optim, name) for name in optim.__all__]
others = (optim.Optimizer, optim.SparseAdam)  # the second needs plait's sparse tensors
optimizers = [o for o in optimizers if isinstance(o, type) and o not in others]
assert len(optimizers) == 14
for make in optimizers:
    p = np.ones((3, 2))
    o = make([p], lr=0.1)
    schedule = optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=9, cycle_momentum=False)
    for _ in range(2):
        if make is optim.LBFGS:
            o.step(lambda: (float((p * p).sum()), [2 * p]))
        else:
            o.step(grads=[2 * p], max_norm=1.0)
            assert o.grad_norm > 0
        schedule.step()
    other = make([p.copy()])
    other.load_state_dict(copy.deepcopy(o.state_dict()))
    average = optim.swa_utils.AveragedModel([p])
    average.update_parameters([p])
    average.update_parameters([p])
    assert float((p * p).sum()) < 6 and np.allclose(average.module[0], p), make
print("done")
"""


def test_without_core() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BARE], env=os.environ, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "done", done.stderr
