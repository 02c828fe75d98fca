"""torchrl: environments, actors, a collector, replay, and the losses of DQN, PPO and SAC."""

import torch
from recording import array, fill, record
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from tensordict.nn.distributions import NormalParamExtractor
from torch import nn
from torchrl.data import LazyTensorStorage, OneHot, ReplayBuffer
from torchrl.envs import GymEnv, StepCounter, TransformedEnv
from torchrl.modules import ProbabilisticActor, QValueActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DQNLoss
from torchrl.objectives.value import GAE

torch.manual_seed(0)
obs, after = array(0, 10, 4), array(1, 10, 4)
done = (torch.arange(10) % 4 == 3)[:, None]
outcome = {"observation": after, "reward": array(2, 10, 1), "done": done, "terminated": done}
batch = TensorDict({"observation": obs, "next": outcome}, [10])

value_net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
actor = QValueActor(fill(value_net), in_keys=["observation"], spec=OneHot(2))
chosen = actor(batch.clone())
record("action", chosen["action"])
record("values", chosen["action_value"])
loss_of = DQNLoss(actor, action_space="one-hot", delay_value=False)
loss_of.make_value_estimator(gamma=0.9)
optimizer = torch.optim.Adam(loss_of.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    loss = loss_of(chosen.clone())["loss"]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("dqn", losses)

net = fill(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4), NormalParamExtractor()))
module = TensorDictModule(net, ["observation"], ["loc", "scale"])
policy = ProbabilisticActor(
    module, in_keys=["loc", "scale"], distribution_class=TanhNormal, return_log_prob=True
)
critic = ValueOperator(fill(nn.Linear(4, 1)), in_keys=["observation"])
data = batch.clone()
with torch.no_grad():
    data["action"] = array(3, 10, 2).tanh() * 0.9
    data["action_log_prob"] = policy.get_dist(data).log_prob(data["action"])
    GAE(gamma=0.9, lmbda=0.8, value_network=critic)(data)
record("advantage", data["advantage"])
ppo = ClipPPOLoss(policy, critic, entropy_bonus=False)
optimizer = torch.optim.Adam(ppo.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    found = ppo(data.clone())
    loss = found["loss_objective"] + found["loss_critic"]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("ppo", losses)

env = TransformedEnv(GymEnv("CartPole-v1"), StepCounter(20))
rollout = env.rollout(15, auto_reset=True, break_when_any_done=False)
record("rollout", rollout["observation"].shape)
buffer = ReplayBuffer(storage=LazyTensorStorage(100), batch_size=8)
buffer.extend(rollout)
record("sampled", buffer.sample()["observation"].shape)
