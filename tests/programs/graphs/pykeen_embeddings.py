"""pykeen: TransE, RotatE and ComplEx on given triples: scores, losses, a short training, ranks."""

import numpy as np
import torch
from pykeen.evaluation import RankBasedEvaluator
from pykeen.models import ComplEx, DistMult, RotatE, TransE
from pykeen.training import SLCWATrainingLoop
from pykeen.triples import TriplesFactory
from recording import fill, record

drawn = np.random.default_rng(0).integers(0, 20, (120, 3))
triples = np.array([[f"e{h}", f"r{r % 4}", f"e{t}"] for h, r, t in drawn])
factory = TriplesFactory.from_labeled_triples(triples)
record("mapped", factory.mapped_triples)
train, test = factory.split([0.8, 0.2], random_state=0)
record("split", test.num_triples)
for kind in (TransE, DistMult, RotatE, ComplEx):
    model = kind(triples_factory=train, embedding_dim=8, random_seed=3)
    fill(model)
    record(f"{kind.__name__} scores", model.score_hrt(factory.mapped_triples[:6]), rtol=5e-3)
    record(f"{kind.__name__} tails", model.score_t(factory.mapped_triples[:3, :2]), rtol=5e-3)
    optimizer = torch.optim.Adam(model.get_grad_params(), lr=0.01)
    loop = SLCWATrainingLoop(model=model, triples_factory=train, optimizer=optimizer)
    losses = loop.train(train, num_epochs=2, batch_size=32, use_tqdm=False)
    record(f"{kind.__name__} losses", losses, rtol=5e-2)
    evaluator = RankBasedEvaluator()
    ranks = evaluator.evaluate(
        model,
        test.mapped_triples,
        batch_size=8,
        use_tqdm=False,
        additional_filter_triples=[train.mapped_triples],
    )
    record(f"{kind.__name__} rank", ranks.get_metric("mrr"), rtol=0.2)
