"""transformers: models saved and loaded by from_pretrained, generate greedily and with beams."""

import torch
from recording import fill, record
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

gpt2 = GPT2Config(vocab_size=60, n_positions=64, n_embd=32, n_layer=2, n_head=4)
llama = LlamaConfig(
    vocab_size=60,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
ids = torch.arange(10).reshape(2, 5) * 5 % 60
for name, model in {"gpt2": GPT2LMHeadModel(gpt2), "llama": LlamaForCausalLM(llama)}.items():
    model = fill(model).eval()
    loss = model(ids, labels=ids).loss
    loss.backward()
    record(f"{name} loss", loss)
    model.save_pretrained(name)
    loaded = AutoModelForCausalLM.from_pretrained(name).eval()
    with torch.no_grad():
        record(f"{name} logits", loaded(ids).logits)
    options = {"max_new_tokens": 12, "pad_token_id": 0, "eos_token_id": 59}
    record(f"{name} greedy", loaded.generate(ids, do_sample=False, **options))
    record(f"{name} beams", loaded.generate(ids, num_beams=3, do_sample=False, **options))
    penalized = loaded.generate(ids, do_sample=False, repetition_penalty=1.3, **options)
    record(f"{name} penalized", penalized)

t5 = T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
t5.decoder_start_token_id = 0
fill(T5ForConditionalGeneration(t5)).save_pretrained("t5", max_shard_size="20KB")
loaded = AutoModelForSeq2SeqLM.from_pretrained("t5").eval()
record("t5 loss", loaded(input_ids=ids, labels=ids).loss)
record("t5 greedy", loaded.generate(ids, max_new_tokens=8, do_sample=False))
half = AutoModelForSeq2SeqLM.from_pretrained("t5", dtype=torch.bfloat16).eval()
record("t5 in bfloat16", half(input_ids=ids, labels=ids).loss.float(), rtol=3e-2)
