"""sentence-transformers: a small local model: encode, similarity, a loss for 20 steps, save."""

import pathlib

import torch
from recording import fill, record
from sentence_transformers import SentenceTransformer, util as search
from sentence_transformers.losses import CosineSimilarityLoss, MultipleNegativesRankingLoss
from sentence_transformers.models import Normalize, Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizer

words = "[PAD] [UNK] [CLS] [SEP] [MASK] a cat dog sat ran on the mat road red car fast"
folder = pathlib.Path("bert")
folder.mkdir()
(folder / "vocab.txt").write_text(words.replace(" ", "\n"))
BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
config = BertConfig(
    vocab_size=17,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
fill(BertModel(config)).save_pretrained(folder)

transformer = Transformer(str(folder), max_seq_length=16)
model = SentenceTransformer(modules=[transformer, Pooling(32), Normalize()], device="cpu")
sentences = ["the cat sat on the mat", "a dog ran", "the red car ran fast on the road"]
embeddings = model.encode(sentences, convert_to_tensor=True)
record("embeddings", embeddings)
record("similarity", model.similarity(embeddings, embeddings))
record("hits", [h["corpus_id"] for h in search.semantic_search(embeddings, embeddings)[0]])

others = sentences[1:] + sentences[:1]
features = [model.tokenize(sentences), model.tokenize(others)]
loss_of = MultipleNegativesRankingLoss(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for _ in range(20):
    loss = loss_of([dict(side) for side in features], None)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
# the gradient of a bias of keys is 0 except for rounding errors, which AdamW scales to full steps
record("trained", {n: p for n, p in model.named_parameters() if "key.bias" not in n})
scored = CosineSimilarityLoss(model)([dict(s) for s in features], torch.tensor([0.1, 0.5, 0.9]))
record("cosine loss", scored)

model.save("saved")
record("loaded", SentenceTransformer("saved", device="cpu").encode(sentences))
