"""stable-baselines3: PPO trained on a given buffer, short runs with an environment, save, load."""

import gymnasium as gym
import numpy as np
import torch
from recording import array, fill, record
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.logger import configure

env = gym.make("CartPole-v1")
model = PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=10, seed=0, device="cpu")
fill(model.policy)
model.set_logger(configure(None, [""]))
seen = array(0, 5, 4)
actions = torch.tensor([0, 1, 0, 1, 1])
values, log_prob, entropy = model.policy.evaluate_actions(seen, actions)
record("values", values)
record("log_prob", log_prob)
record("entropy", entropy)

buffer = model.rollout_buffer
buffer.reset()
numbers = np.random.default_rng(0)
for _ in range(64):
    observation = numbers.standard_normal((1, 4)).astype(np.float32)
    action = torch.tensor([int(numbers.integers(2))])
    with torch.no_grad():
        values, log_prob, _ = model.policy.evaluate_actions(torch.as_tensor(observation), action)
    reward, start = numbers.standard_normal(1), np.array([numbers.random() < 0.1])
    buffer.add(observation, action.numpy()[:, None], reward, start, values, log_prob)
buffer.compute_returns_and_advantage(last_values=values, dones=np.array([False]))
record("advantages", buffer.advantages)
np.random.seed(0)
model.train()
record("trained", model.policy.state_dict(), rtol=1e-2, atol=1e-3)
record("predicted", model.predict(seen.numpy(), deterministic=True)[0])

model.learn(256)
record("steps", model.num_timesteps)
model.save("ppo")
loaded = PPO.load("ppo", env=env, device="cpu")
before, after = model.policy.state_dict(), loaded.policy.state_dict()
record("same", all(torch.equal(before[name], after[name]) for name in before))
loaded.learn(128)
for kind in (A2C, DQN):
    other = kind("MlpPolicy", env, seed=0, device="cpu").learn(200)
    record(kind.__name__, other.num_timesteps)
