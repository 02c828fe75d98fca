"""NeuMF, a recommender: He et al., "Neural collaborative filtering" (2017), with the tables of
MovieLens 1M and the layers of MLPerf's benchmark."""

from __future__ import annotations

from typing import Any

__all__ = ["FILMS", "USERS", "build"]

USERS, FILMS = 6040, 3706


def build(torch: Any, width: float = 1.0, users: int = USERS, films: int = FILMS) -> Any:
    """Return a module: (n,) users and (n,) films to (n,) logits."""
    nn = torch.nn

    def w(channels: int) -> int:
        return max(4, int(channels * width))

    class NeuMF(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.user_product = nn.Embedding(users, w(64))
            self.film_product = nn.Embedding(films, w(64))
            self.user_mlp = nn.Embedding(users, w(128))
            self.film_mlp = nn.Embedding(films, w(128))
            layers: list[Any] = []
            before = 2 * w(128)
            for after in (256, 128, 64):
                layers += [nn.Linear(before, w(after)), nn.ReLU(inplace=True)]
                before = w(after)
            self.mlp = nn.Sequential(*layers)
            self.score = nn.Linear(w(64) + before, 1)

        def forward(self, user: Any, film: Any) -> Any:
            product = self.user_product(user) * self.film_product(film)
            deep = self.mlp(torch.cat([self.user_mlp(user), self.film_mlp(film)], dim=-1))
            return self.score(torch.cat([product, deep], dim=-1)).squeeze(-1)

    return NeuMF()
