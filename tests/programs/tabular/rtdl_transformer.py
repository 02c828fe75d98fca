"""rtdl: an FT-Transformer, a ResNet and an MLP of tables, with categories, for a few steps."""

import rtdl
import torch
from recording import array, fill, record

x, kinds, y = array(0, 16, 5), torch.arange(32).view(16, 2) % 3, array(1, 16, 1)
models = {
    "transformer": (
        rtdl.FTTransformer.make_default(
            n_num_features=5,
            cat_cardinalities=[3, 3],
            n_blocks=1,
            last_layer_query_idx=[-1],
            d_out=1,
        ),
        2,
    ),
    "mlp": (rtdl.MLP.make_baseline(d_in=5, d_layers=[16, 8], dropout=0.0, d_out=1), 1),
    "resnet": (
        rtdl.ResNet.make_baseline(
            d_in=5,
            d_main=16,
            d_hidden=8,
            dropout_first=0.0,
            dropout_second=0.0,
            n_blocks=2,
            d_out=1,
        ),
        1,
    ),
}
for name, (model, inputs) in models.items():
    fill(model)
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    losses = []
    for _ in range(6):
        loss = (model(*(x, kinds)[:inputs]) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    record(name, losses, rtol=1e-2)
groups = models["transformer"][0].optimization_param_groups()
record("groups", [len(group["params"]) for group in groups])
