"""A Sphinx extension: names of plait in backticks become links to their place in the reference.

`nn.Linear`, `plait.save(state, path)` and `DataLoader` are found by the names that programs use,
`model.eval()` and `x.exp()` by the class of such a variable. Names of operators are taken from
their pages. A single word in lower case, which may be a word of
the sentence or an argument, is a name only with parentheses, an underscore or `plait.` before it.
Pages of the reference themselves have no such links.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from public_names import public
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

__all__ = ["setup"]

# what the variables of examples are
OBJECTS = {
    "loader": "utils.data.DataLoader",
    "loss": "Tensor",
    "model": "nn.Module",
    "module": "nn.Module",
    "optimizer": "optim.Optimizer",
    "tensor": "Tensor",
    "x": "Tensor",
    "y": "Tensor",
}
OPERATORS = "reference/operators/"
NAME = re.compile(r"(?P<plait>plait\.)?(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?P<call>\(.*\))?")

Place = tuple[str, str]  # a page and an anchor


def _public(full: str) -> str | None:
    name = public(full)
    return name.removeprefix("plait.") if name.startswith("plait.") else None


def _short(name: str) -> str:
    """Return a name from its class on: `DataLoader` of `utils.data.DataLoader`."""
    parts = name.split(".")
    first = next((i for i, part in enumerate(parts) if part[:1].isupper()), 0)
    return ".".join(parts[first:])


def _operators(app: Any, doctree: nodes.document) -> None:
    """Note the operators of a page by the names that its lines "called as" have."""
    docname = app.env.docname
    if not docname.startswith(OPERATORS):
        return
    results: dict[str, Place] = {}
    for line in doctree.findall(nodes.emphasis):
        text = line.astext()
        section = line.parent
        while section is not None and not isinstance(section, nodes.section):
            section = section.parent
        if section is None or not text.startswith("called as "):
            continue
        for name in re.findall(r"[\w.]+", text.partition(";")[0]):
            if name.startswith(("plait.", "Tensor.")):
                results[name.removeprefix("plait.")] = (docname, section["ids"][0])
    app.env.plait_operators = {**getattr(app.env, "plait_operators", {}), **results}


def _places(env: Any) -> dict[str, Place]:
    """Return the place of each name, short names of classes among them if they are clear."""
    places: dict[str, Place] = dict(getattr(env, "plait_operators", {}))
    short: dict[str, set[Place]] = {}
    for full, entry in env.domains["py"].objects.items():
        place = (entry.docname, entry.node_id)
        places[full] = place
        name = _public(full)
        if name is not None:
            places[name] = place
            if _short(name) != name:
                short.setdefault(_short(name), set()).add(place)
    for name, result in short.items():
        if len(result) == 1:
            places.setdefault(name, *result)
    return places


def _full(name: str) -> str:
    """Return `nn.Module.eval` for `model.eval`."""
    variable, dot, member = name.partition(".")
    return f"{OBJECTS[variable]}.{member}" if dot and variable in OBJECTS else name


def _is_clear(match: re.Match[str]) -> bool:
    name = match["name"]
    return bool(match["plait"] or match["call"] or re.search(r"[A-Z_.]", name.strip("_")))


class LinkNames(SphinxPostTransform):
    """Put links around the names of a page."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        docname = self.env.docname
        if docname.startswith("reference/"):
            return
        places = _places(self.env)
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, (nodes.title, nodes.reference)):
                continue
            match = NAME.fullmatch(literal.astext())
            place = places.get(_full(match["name"])) if match and _is_clear(match) else None
            if place is not None:
                builder = self.app.builder
                link = make_refnode(builder, docname, *place, literal.deepcopy(), literal.astext())
                literal.replace_self(link)


def setup(app: Any) -> dict[str, Any]:
    """Register the transform."""
    app.connect("doctree-read", _operators)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
