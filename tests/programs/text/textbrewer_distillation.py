"""textbrewer: a small BERT distilled from a larger one, with matched hidden states."""

import torch
from recording import fill, record
from textbrewer import DistillationConfig, GeneralDistiller, TrainingConfig
from transformers import BertConfig, BertForSequenceClassification

common = {
    "vocab_size": 50,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "num_labels": 3,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
large = BertForSequenceClassification(BertConfig(hidden_size=32, num_hidden_layers=4, **common))
small = BertForSequenceClassification(BertConfig(hidden_size=16, num_hidden_layers=2, **common))
fill(large), fill(small)
losses = []


def outputs(batch, result):
    """Return what the distiller matches."""
    return {"logits": result.logits, "hidden": result.hidden_states, "losses": result.loss}


ids = (torch.arange(96).view(16, 6) * 7) % 50
data = torch.utils.data.TensorDataset(ids, torch.arange(16) % 3)
loader = torch.utils.data.DataLoader(data, 8)
distiller = GeneralDistiller(
    TrainingConfig(device="cpu", output_dir="out", ckpt_frequency=1, log_dir=None),
    DistillationConfig(
        temperature=4,
        hard_label_weight=0.5,
        intermediate_matches=[
            {
                "layer_T": 2,
                "layer_S": 1,
                "feature": "hidden",
                "loss": "hidden_mse",
                "weight": 1,
                "proj": ["linear", 16, 32],
            }
        ],
    ),
    large,
    small,
    outputs,
    outputs,
)
fill(distiller.projs[0])
with distiller:
    optimizer = torch.optim.AdamW(small.parameters(), 1e-3)
    distiller.train(
        optimizer,
        loader,
        num_epochs=3,
        scheduler_class=None,
        callback=None,
        batch_postprocessor=lambda b: {
            "input_ids": b[0],
            "labels": b[1],
            "output_hidden_states": True,
        },
    )
record(
    "student",
    {k: v for k, v in small.state_dict().items() if "key.bias" not in k},
    rtol=1e-2,
    atol=1e-3,
)
