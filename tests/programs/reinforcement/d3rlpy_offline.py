"""d3rlpy: CQL and behaviour cloning from a given data set, their losses and actions."""

import d3rlpy
import numpy as np
from recording import record

rng = np.random.default_rng(0)
x = rng.standard_normal((200, 3)).astype(np.float32)
ends = np.zeros(200, dtype=np.float32)
ends[19::20] = 1
d3rlpy.seed(3)
continuous = d3rlpy.dataset.MDPDataset(x, np.tanh(x[:, :1]), x[:, 1], ends)
discrete = d3rlpy.dataset.MDPDataset(x, (x[:, 0] > 0).astype(int)[:, None], x[:, 1], ends)
size = d3rlpy.models.VectorEncoderFactory([16])
models = {
    "bc": (d3rlpy.algos.BCConfig(batch_size=32, encoder_factory=size), continuous),
    "dqn": (d3rlpy.algos.DQNConfig(batch_size=32, encoder_factory=size), discrete),
    "cql": (d3rlpy.algos.DiscreteCQLConfig(batch_size=32, encoder_factory=size), discrete),
    "sac": (
        d3rlpy.algos.SACConfig(
            batch_size=32, actor_encoder_factory=size, critic_encoder_factory=size
        ),
        continuous,
    ),
}
for name, (config, data) in models.items():
    model = config.create(device="cpu:0")
    results = model.fit(
        data,
        n_steps=10,
        n_steps_per_epoch=5,
        show_progress=False,
        save_interval=100,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
    )
    record(
        f"{name} losses",
        [sum(v for k, v in values.items() if "loss" in k) for _, values in results],
        rtol=3e-2,
    )
    record(f"{name} actions", model.predict(x[:6]), rtol=5e-2, atol=1e-2)
