"""peft: LoRA on GPT-2, 20 steps, saved, loaded, merged; IA3 and DoRA for a few steps."""

import torch
from peft import IA3Config, LoraConfig, PeftModel, TaskType, get_peft_model
from recording import fill, gradients, record
from transformers import GPT2Config, GPT2LMHeadModel

dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
config = GPT2Config(vocab_size=60, n_positions=32, n_embd=32, n_layer=2, n_head=4, **dropout)
ids = torch.arange(48).reshape(4, 12) * 7 % 60


def train(model, steps):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    losses = []
    for _ in range(steps):
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def base():
    return fill(GPT2LMHeadModel(config))


lora = LoraConfig(
    task_type=TaskType.CAUSAL_LM, r=4, lora_alpha=16, target_modules=["c_attn"], fan_in_fan_out=True
)
model = fill(get_peft_model(base(), lora))
record("trainable", model.get_nb_trainable_parameters())
record("first loss", train(model, 1))
record("gradients", gradients(model))
record("losses", train(model, 19))
record("trained", {n: p for n, p in model.named_parameters() if p.requires_grad})
model.save_pretrained("adapter")
start = fill(get_peft_model(base(), lora)).unload()
loaded = PeftModel.from_pretrained(start, "adapter").eval()
logits = loaded(ids).logits
record("loaded", logits)
merged = loaded.merge_and_unload()
record("merged", merged(ids).logits)
assert torch.allclose(merged(ids).logits, logits, atol=1e-4)
with model.disable_adapter():
    record("disabled", model(input_ids=ids).logits)

ia3 = IA3Config(
    task_type=TaskType.CAUSAL_LM,
    target_modules=["c_attn", "mlp.c_proj"],
    feedforward_modules=["mlp.c_proj"],
    fan_in_fan_out=True,
)
record("ia3", train(get_peft_model(base(), ia3), 5))
lora.use_dora = True
record("dora", train(fill(get_peft_model(base(), lora)), 5))
