"""bertopic: topics of short texts from vectors of a torch layer, without a downloaded model."""

import numpy as np
import torch
from bertopic import BERTopic
from bertopic.dimensionality import BaseDimensionalityReduction
from recording import array, record
from sklearn.cluster import KMeans

texts = [
    f"{a} {b} story" for a in ("cat", "dog", "fish") for b in ("food", "toy", "house", "walk")
] * 3
table = torch.nn.Embedding(300, 8)
table.weight.data.copy_(array(0, 300, 8))
with torch.no_grad():
    vectors = torch.stack(
        [4 * table(torch.tensor([sum(map(ord, t.split()[0])) % 300])).mean(0) for t in texts]
    )
    vectors = vectors + 0.1 * array(1, *vectors.shape)
model = BERTopic(
    embedding_model=None,
    umap_model=BaseDimensionalityReduction(),
    hdbscan_model=KMeans(3, random_state=0, n_init=3),
)
topics, _ = model.fit_transform(texts, vectors.numpy())
record("topics", np.array(topics))
record("names", list(model.get_topic_info()["Name"]))
model.save("topics", serialization="pytorch")
again = BERTopic.load("topics")
record("again", list(again.get_topic_info()["Count"]))
