"""keybert: keywords by a small model of one's own, with and without diversity."""

import torch
from keybert import KeyBERT
from keybert.backend import BaseEmbedder
from recording import array, record

text = (
    "Supervised learning is the task of learning a function that maps an input to an output from "
    "examples. Each example is a pair of an input vector and an output value."
)
table = torch.nn.EmbeddingBag(997, 16)
table.weight.data.copy_(array(0, 997, 16))


class Hashes(BaseEmbedder):
    """The mean of vectors that the words' letters pick."""

    def embed(self, documents, verbose=False):
        """Return the vectors."""
        words = [[sum(map(ord, w)) % 997 for w in str(d).lower().split()] for d in documents]
        offsets = torch.tensor([0, *[len(w) for w in words[:-1]]]).cumsum(0)
        flat = torch.tensor([i for w in words for i in w])
        return table(flat, offsets).detach().numpy()


model = KeyBERT(Hashes())
for words in ({}, {"use_mmr": True, "diversity": 0.6}, {"use_maxsum": True, "nr_candidates": 10}):
    result = model.extract_keywords(
        text, keyphrase_ngram_range=(1, 2), stop_words="english", **words
    )
    record(f"{list(words)} words", [word for word, _ in result])
    record(f"{list(words)} weights", [value for _, value in result])
