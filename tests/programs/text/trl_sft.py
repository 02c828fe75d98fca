"""trl: supervised tuning and direct preferences of a tiny model, with a tokenizer made here."""

from datasets import Dataset
from recording import fill, record
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

words = [
    "<pad>",
    "<eos>",
    *["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "fast", "slow", "good", "bad"],
]
plain = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<pad>"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>")
config = LlamaConfig(
    vocab_size=len(words),
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    pad_token_id=0,
    eos_token_id=1,
    bos_token_id=None,
)
common = {
    "output_dir": "out",
    "max_steps": 4,
    "per_device_train_batch_size": 4,
    "report_to": [],
    "save_strategy": "no",
    "logging_steps": 1,
    "use_cpu": True,
    "bf16": False,
    "disable_tqdm": True,
    "learning_rate": 1e-3,
    "seed": 3,
    "gradient_checkpointing": False,
}
texts = ["the cat sat on the mat", "a dog ran fast", "the dog sat", "a cat ran slow"] * 4
LlamaForCausalLM(config).save_pretrained("tiny")
trainer = SFTTrainer(
    fill(LlamaForCausalLM.from_pretrained("tiny")),
    SFTConfig(**common),
    train_dataset=Dataset.from_dict({"text": texts}),
    processing_class=tokenizer,
)
trainer.train()
record("sft", [one["loss"] for one in trainer.state.log_history if "loss" in one], rtol=1e-2)
pairs = Dataset.from_dict(
    {"prompt": ["the cat"] * 8, "chosen": [" sat good"] * 8, "rejected": [" ran bad"] * 8}
)
trainer = DPOTrainer(
    fill(LlamaForCausalLM.from_pretrained("tiny")),
    args=DPOConfig(**common),
    train_dataset=pairs,
    processing_class=tokenizer,
)
trainer.train()
record("dpo", [one["loss"] for one in trainer.state.log_history if "loss" in one], rtol=1e-2)
