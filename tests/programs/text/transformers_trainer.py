"""transformers: BERT trained by Trainer with a callback, checkpoints, evaluation, and resuming."""

import torch
from recording import fill, record
from torch.utils.data import Dataset, SequentialSampler
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class Sums(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = torch.tensor([(index * 7 + place * (index % 5 + 1)) % 50 for place in range(12)])
        return {"input_ids": ids, "labels": ids.sum() % 2}


class InOrder(Trainer):
    def _get_train_sampler(self, *arguments):
        return SequentialSampler(self.train_dataset)


class Losses(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_log(self, args, state, control, logs=None, **rest):
        self.seen.append(logs.get("loss", 0.0))


config = BertConfig(
    vocab_size=50,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
arguments = TrainingArguments(
    output_dir="out",
    max_steps=20,
    per_device_train_batch_size=8,
    learning_rate=1e-3,
    lr_scheduler_type="cosine",
    warmup_steps=4,
    logging_steps=5,
    eval_strategy="steps",
    eval_steps=10,
    save_steps=10,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def parameters(model):
    # a bias of keys has a gradient of 0 but for rounding, of which AdamW makes steps
    return {name: p for name, p in model.named_parameters() if "key.bias" not in name}


def trainer():
    losses = Losses()
    model = fill(BertForSequenceClassification(config))
    return losses, InOrder(
        model=model,
        args=arguments,
        train_dataset=Sums(),
        eval_dataset=Sums(),
        compute_metrics=accuracy,
        callbacks=[losses],
    )


losses, first = trainer()
first.train()
record("losses", losses.seen)
record("trained", parameters(first.model))
record("evaluated", first.evaluate()["eval_loss"])

losses, second = trainer()
second.train(resume_from_checkpoint="out/checkpoint-10")
record("resumed steps", second.state.global_step)
record("resumed", parameters(second.model))
record("predicted", second.predict(Sums()).predictions)
