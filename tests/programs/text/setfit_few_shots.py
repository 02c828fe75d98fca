"""setfit: few-shot training of a tiny sentence model with a head, by its trainer."""

import torch
from datasets import Dataset
from recording import fill, record
from sentence_transformers import SentenceTransformer, models as st
from setfit import SetFitModel, Trainer, TrainingArguments
from sklearn.linear_model import LogisticRegression
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

words = [
    "[PAD]",
    "[UNK]",
    *["good", "nice", "great", "bad", "poor", "awful", "film", "book", "food", "day"],
]
plain = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "[UNK]"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(
    tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]", model_max_length=16
).save_pretrained("tiny")
config = BertConfig(
    vocab_size=len(words),
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
fill(BertModel(config)).save_pretrained("tiny")
body = st.Transformer("tiny")
encoder = SentenceTransformer(modules=[body, st.Pooling(16)], device="cpu")
model = SetFitModel(model_body=encoder, model_head=LogisticRegression())
texts = [f"{a} {b}" for a in ("good", "nice", "bad", "awful") for b in ("film", "book")]
data = Dataset.from_dict({"text": texts, "label": [0] * 4 + [1] * 4})
arguments = TrainingArguments(
    output_dir="out",
    batch_size=8,
    num_epochs=1,
    max_steps=3,
    report_to="none",
    save_strategy="no",
    seed=3,
)
trainer = Trainer(model=model, args=arguments, train_dataset=data)
trainer.train()
record("predictions", torch.as_tensor(model.predict(["great film", "poor book", "nice day"])))
record("vectors", encoder.encode(["good film"]), rtol=5e-2)
