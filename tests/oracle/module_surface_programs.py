"""Random programs about what a library sees of a module, to be run by any library like PyTorch.

A program is a text of classes and a list of statements about their instances: hooks, registries
edited by hand, states, copies, conversions and lists. `module_surface_runs` executes both.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from module_programs import Program

__all__ = ["Program", "generate"]

MEMBERS = ("a", "b", "c")
CHILDREN = ("x", "y")
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
STATE_HOOKS = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
STOCK = (
    "Identity()",
    "BatchNorm1d(1)",
    "Sequential(nn.ReLU())",
    "Linear(1, 1)",
    "Linear(1, 1, bias=False)",
    "ModuleList([nn.ReLU()])",
)


# ---- classes -----------------------------------------------------------------------------------

OVERRIDES = (
    "    _version = 3\n",
    "    def extra_repr(self):\n        return 'more'\n",
    "    def extra_repr(self):\n        return 'two\\nlines'\n",
    "    def _get_name(self):\n        return 'Named'\n",
    "    def get_extra_state(self):\n        return {'count': 7}\n"
    "    def set_extra_state(self, state):\n        note('extra', state)\n",
    "    def _apply(self, fn, recurse=True):\n        note('apply', recurse)\n"
    "        return super()._apply(fn, recurse)\n",
    "    def train(self, mode=True):\n        note('train', mode)\n"
    "        return super().train(mode)\n",
    "    def named_parameters(self, *args, **kwargs):\n        note('listed')\n"
    "        yield from super().named_parameters(*args, **kwargs)\n",
    "    def register_buffer(self, name, tensor):\n        note('buffer', name)\n"
    "        super().register_buffer(name, tensor)\n",
    "    def register_parameter(self, name, param):\n        note('parameter', name)\n"
    "        super().register_parameter(name, param)\n",
    "    def __getstate__(self):\n        note('getstate')\n"
    "        return {**super().__getstate__(), 'extra': 3}\n",
    "    def __setstate__(self, state):\n        note('setstate', list(state))\n"
    "        super().__setstate__(state)\n",
    "    def _save_to_state_dict(self, destination, prefix, keep_vars):\n"
    "        note('save', prefix, keep_vars)\n"
    "        super()._save_to_state_dict(destination, prefix, keep_vars)\n"
    "        destination[prefix + 'added'] = T()\n",
    "    def _load_from_state_dict(self, state, prefix, metadata, strict, *rest):\n"
    "        note('load', list(state), prefix, dict(metadata), strict)\n"
    "        super()._load_from_state_dict(state, prefix, metadata, strict, *rest)\n"
    "        note('loaded', self._parameters, *rest)\n",
    "    def _load_from_state_dict(self, state, prefix, metadata, strict, *rest):\n"
    "        state.pop(prefix + 'added', None)\n"
    "        if prefix + 'a' not in state:\n            state[prefix + 'a'] = T()\n"
    "        super()._load_from_state_dict(state, prefix, metadata, strict, *rest)\n",
    "    def _load_from_state_dict(self, state, prefix, metadata, strict, missing, more, errors):\n"
    "        errors.append(f'refused {prefix}')\n        missing.append('all')\n",
    "    def state_dict(self, *args, **kwargs):\n        note('state', list(kwargs))\n"
    "        return super().state_dict(*args, **kwargs)\n",
    "    def _call_impl(self, *args, **kwargs):\n        note('call')\n"
    "        return super()._call_impl(*args, **kwargs)\n",
)
FORWARD = (
    "    def forward(self, input, scale=1.0):\n"
    "        if self.__dict__.get('fails'):\n            raise ValueError('it fails')\n"
    "        result = input * scale\n"
    "        for each in [*self._parameters.values(), *self._buffers.values()]:\n"
    "            result = result if each is None else result + each\n"
    "        for child in self._modules.values():\n"
    "            result = result if child is None else child(result)\n"
    "        return {result}\n"
)


def _class(rng: random.Random, number: int) -> str:
    bases = ["nn.Module"] if number == 0 or rng.random() < 0.5 else [f"C{number - 1}"]
    text = f"class C{number}({', '.join(bases)}):\n    def __init__(self):\n"
    text += "        super().__init__()\n"
    for _ in range(rng.choice([0, 1, 2, 3])):
        text += f"        {_edit(rng, 'self')}\n"
    choice = rng.sample(OVERRIDES, rng.choice([0, 0, 0, 1, 1, 2]))
    names = {each.partition("def ")[2].partition("(")[0] for each in choice}
    text += "".join(choice if len(names) == len(choice) else choice[:1])
    if bases == ["nn.Module"] and rng.random() < 0.95:
        # a tuple, or a dict, that modules above it cannot add to
        text += FORWARD.replace("{result}", rng.choice(["result"] * 9 + ["(result, input)"]))
    return text


# ---- statements --------------------------------------------------------------------------------


def _value(rng: random.Random) -> str:
    return rng.choice(
        [
            "P()",
            "P()",
            "P(requires_grad=False)",
            "T()",
            "nn.Buffer(T())",
            "nn.Buffer(T(), persistent=False)",
            f"nn.{rng.choice(STOCK)}",
            "shared",
            "None",
            "5",
        ]
    )


def _edit(rng: random.Random, m: str) -> str:
    """A change of members that can be undone by others."""
    name, child = rng.choice(MEMBERS), rng.choice(CHILDREN)
    return rng.choice(
        [
            f"{m}.{name} = P()",
            f"{m}.{name} = {rng.choice(['P()', 'shared', 'nn.Buffer(T())', 'None'])}",
            f"{m}.{child} = nn.{rng.choice(STOCK)}",
            f"{m}.register_buffer('{name}', T())",
            f"{m}._parameters['{name}'] = {rng.choice(['P()', 'shared', 'None'])}",
            f"{m}._modules['{child}'] = {rng.choice(['nn.ReLU()', 'nn.Linear(1, 1)', 'None'])}",
            f"{m}._buffers['{name}'] = {rng.choice(['T()', 'None'])}",
        ]
    )


def _members(rng: random.Random, m: str) -> str:
    name, child = rng.choice(MEMBERS), rng.choice(CHILDREN)
    kind = rng.choice(["_parameters", "_buffers", "_modules"])
    odd = rng.choice(["a.b", "", "training", "forward", "_parameters", name, name])
    return rng.choice(
        [
            _edit(rng, m),
            _edit(rng, m),
            f"{m}.{rng.choice([name, child])} = {_value(rng)}",
            f"{m}.{rng.choice([name, child])} = {_value(rng)}",
            f"del {m}.{rng.choice([name, child])}",
            f"{m}.register_parameter({odd!r}, {_value(rng)})",
            f"{m}.register_buffer({odd!r}, {_value(rng)})",
            f"{m}.register_buffer({odd!r}, {_value(rng)}, persistent={rng.random() < 0.5})",
            f"{m}.add_module({rng.choice([odd, child])!r}, {_value(rng)})",
            f"{m}.register_module({child!r}, {_value(rng)})",
            f"{m}.register_parameter(3, None)",
            f"{m}.set_submodule({_path(rng)!r}, nn.ReLU(), strict={rng.random() < 0.5})",
            f"{m}.set_submodule({_path(rng)!r}, {_value(rng)})",
            f"{m}.{kind}.pop({rng.choice([name, child])!r}, None)",
            f"{m}.{kind}.clear()",
            f"{m}.{kind} = dict(reversed({m}.{kind}.items()))",
            f"{m}.{kind} = collections.OrderedDict({m}.{kind})",
            f"{m}.__dict__['{kind}'] = {{**{m}.{kind}}}",
            f"{m}._non_persistent_buffers_set.add({name!r})",
            f"{m}.__dict__[{name!r}] = T()",
            f"{m}.fails = {rng.random() < 0.3}",
        ]
    )


def _path(rng: random.Random) -> str:
    return rng.choice(
        ["", "x", "y", "x.y", "x.0", "x.weight", "y.x", "a", "nothing", "x.nothing.a"]
    )


def _hook(rng: random.Random, number: int) -> str:
    return f"hook({number}, {rng.choice(['None', 'None', 'None', 'twice', 'fails'])})"


def _registration(rng: random.Random, m: str, number: int) -> str:
    hook, prepend = _hook(rng, number), rng.random() < 0.3
    kwargs, always = rng.random() < 0.3, rng.random() < 0.3
    call = rng.choice(
        [
            f"{m}.register_forward_pre_hook({hook}, prepend={prepend}, with_kwargs={kwargs})",
            f"{m}.register_forward_hook({hook}, prepend={prepend}, with_kwargs={kwargs}, "
            f"always_call={always})",
            f"{m}.register_forward_hook({hook})",
            f"{m}.register_full_backward_hook({hook}, prepend={prepend})",
            f"{m}.register_full_backward_pre_hook({hook}, prepend={prepend})",
            f"{m}.register_backward_hook(counting({number}))",
            f"{m}.register_state_dict_pre_hook({hook})",
            f"{m}.register_state_dict_post_hook({hook})",
            f"{m}._register_state_dict_hook({hook})",
            f"{m}.register_load_state_dict_pre_hook({hook})",
            f"{m}._register_load_state_dict_pre_hook({hook}, with_module={always})",
            f"{m}.register_load_state_dict_post_hook({hook})",
            f"place.register_module_forward_pre_hook({hook})",
            f"place.register_module_forward_hook({hook}, always_call={always})",
            f"place.register_module_full_backward_hook({hook})",
            f"place.register_module_full_backward_pre_hook({hook})",
            f"place.register_module_parameter_registration_hook({hook})",
            f"place.register_module_buffer_registration_hook({hook})",
            f"place.register_module_module_registration_hook({hook})",
        ]
    )
    return f"handles.append({call})"


def _hooks_by_hand(rng: random.Random, m: str, number: int) -> str:
    kind = rng.choice(HOOKS + HOOKS + STATE_HOOKS)
    # what the gradients of an operator are is not PyTorch's
    by_hand = f"counting({number})" if kind == "_backward_hooks" else _hook(rng, number)
    return rng.choice(
        [
            f"handles[{number} % len(handles)].remove()",
            f"handles.pop({number} % len(handles)).remove()",
            f"{m}.{kind}.clear()",
            f"{m}.{kind}[{1000000 + number}] = {by_hand}",
            f"{m}.{kind}[{1000000 + number}] = {by_hand}",
            f"{m}.{kind}.pop(next(iter({m}.{kind}), None), None)",
            f"{m}.{kind}.move_to_end(next(iter({m}.{kind})))",
            f"{m}.{kind} = collections.OrderedDict(reversed({m}.{kind}.items()))",
            f"{m}._forward_hooks_with_kwargs.clear()",
            f"{m}._forward_hooks_always_called.update(dict.fromkeys({m}._forward_hooks, True))",
            f"{m}._is_full_backward_hook = {rng.choice([True, False, None])}",
            f"show(len({m}.{kind}), type({m}.{kind}).__name__)",
            f"with {m}.register_forward_hook({_hook(rng, number)}): show({m}(T()))",
        ]
    )


def _call(rng: random.Random, m: str) -> str:
    return rng.choice(
        [
            f"show({m}(T()))",
            f"show({m}(T(), scale=2.0))",
            f"show({m}.forward(T()))",
            f"show({m}.__call__(T()))",
            f"show({m}._call_impl(T()))",
            f"backward({m})",
            f"backward({m})",
            f"backward({m}, False)",
            f"{m}.zero_grad(set_to_none={rng.random() < 0.5}); show(grads({m}))",
            f"show({m}(T(), 1, 2, 3))",
        ]
    )


def _state(rng: random.Random, m: str, other: str) -> str:
    strict, assign = rng.random() < 0.6, rng.random() < 0.3
    key = rng.choice(
        ["a", "b", "x.weight", "x.y.a", "y.bias", "nothing", "x.nothing", "_extra_state"]
    )
    load = f"load({m}, kept[-1], {strict}, {assign})"
    return rng.choice(
        [
            f"kept.append({m}.state_dict()); show(list(kept[-1]), kept[-1]._metadata)",
            f"kept.append({m}.state_dict(keep_vars=True)); show(kept[-1])",
            f"show({m}.state_dict(prefix='p.', destination=collections.OrderedDict()))",
            f"show({m}.state_dict(None, 'q.'))",
            load,
            load,
            f"kept[-1].pop({key!r}, None); {load}",
            f"kept[-1][{key!r}] = T(); {load}",
            f"kept[-1][{key!r}] = T().reshape(1, 1, 1); {load}",
            f"kept[-1][{key!r}] = 'text'; {load}",
            f"load({m}, {other}.state_dict(), {strict}, {assign})",
            f"load({m}, dict({m}.state_dict()), {strict}, False)",
            f"{m}.load_state_dict([1], strict={strict})",
            f"direct({m}, kept[-1], {rng.choice(['', 'x.'])!r}, {strict})",
            f"saved = {{}}; {m}._save_to_state_dict(saved, 'p.', {assign}); show(saved)",
        ]
    )


def _listing(rng: random.Random, m: str) -> str:
    flags = f"remove_duplicate={rng.random() < 0.5}"
    recurse = f"recurse={rng.random() < 0.5}"
    return rng.choice(
        [
            f"show(list({m}.named_parameters({flags}, {recurse})))",
            f"show(list({m}.named_parameters('p')))",
            f"show(list({m}.named_buffers({flags}, {recurse})))",
            f"show(list({m}.named_modules({flags})))",
            f"show(list({m}.named_modules(prefix='p')))",
            f"show(list({m}.modules({flags})))",
            f"show(list({m}.named_children()), list({m}.children()))",
            f"show(list({m}.parameters({recurse})), list({m}.buffers()))",
            f"show(list({m}._named_members(lambda each: each._buffers.items(), {flags})))",
            f"show(repr({m}))",
            f"show({m}.get_submodule({_path(rng)!r}))",
            f"show({m}.get_parameter({_path(rng)!r}))",
            f"show({m}.get_buffer({_path(rng)!r}))",
            f"show({m}.get_extra_state())",
            f"show({m}.{rng.choice([*MEMBERS, *CHILDREN, 'nothing'])})",
            f"show({m}._get_name(), {m}._version, {m}.training)",
            f"show(sorted(set(dir({m})) & {{'a', 'b', 'c', 'x', 'y'}}))",
        ]
    )


def _whole(rng: random.Random, m: str, other: str, fresh: str) -> str:
    dtype = rng.choice(["float64", "float32", "float16"])
    key = rng.choice(["_state_dict_hooks", "_forward_pre_hooks", "_load_state_dict_pre_hooks"])
    return rng.choice(
        [
            f"{fresh} = copy.copy({m}); {fresh}._modules = dict({fresh}._modules)",  # no cycles
            f"{fresh} = copy.deepcopy({m})",
            f"{fresh} = pickle.loads(pickle.dumps({m}))",
            f"{fresh} = {m}._replicate_for_data_parallel()",
            f"{m}.train({rng.choice([True, False, 3])})",
            f"{m}.eval()",
            f"{m}.requires_grad_({rng.random() < 0.5})",
            f"{m}.apply(lambda each: note('applied', type(each).__name__))",
            f"{m}.to(lib.{dtype})",
            f"{m}.double().float()",
            f"{m}.type(lib.{dtype})",
            f"{m}._apply(lambda t: note('fn', isinstance(t, nn.Parameter), t) or t * 2)",
            f"{m}._apply(lambda t: t * 2, recurse=False)",
            f"{m}.to_empty(device='cpu'); {m}._apply(lambda t: t.fill_(1.0))",
            f"{m}.cpu()",
            "show(nn.Linear(1, 1).share_memory())",
            f"nn.Module.__init__({m})",
            f"nn.Module.__init__({m}, 3)",
            f"nn.Module.__init__({m}, key=3)",
            f"{m}.__setstate__({other}.__getstate__()); {m}._modules = dict({m}._modules)",
            f"state = {m}.__getstate__(); state.pop({key!r}); {m}.__dict__.pop({key!r}); "
            f"{m}.__setstate__(state)",
            f"{m}.{rng.choice(CHILDREN)} = {other}" if other > m else f"{m}.eval()",  # no cycles
            f"{m}.set_extra_state(3)",
        ]
    )


def _parameter(rng: random.Random) -> str:
    result = rng.choice(["P()", "nn.Buffer(T())", "nn.Parameter()", "nn.Buffer()", "shared", "T()"])
    return rng.choice(
        [
            f"show({result}, type({result}).__name__)",
            f"show(isinstance({result}, nn.Parameter), isinstance({result}, nn.Buffer))",
            f"show(copy.deepcopy({result}))",
            f"show(pickle.loads(pickle.dumps({result})))",
            f"show(getattr({result}, 'persistent', 'nothing'))",
            f"show(type({result} * 2).__name__, type({result}.detach()).__name__)",
            f"show(nn.Parameter({result}), nn.Buffer({result}, persistent=False).persistent)",
            "marked = P(); marked.mark = 3; show(pickle.loads(pickle.dumps(marked)).mark)",
            "nn.Parameter(nn.Parameter(T()), False)",
            "show([nn.ParameterList([P(), T()])[1]], nn.ParameterDict({'k': P()})['k'])",
        ]
    )


def generate(rng: random.Random) -> Program:
    """Make a program."""
    count = rng.choice([1, 2, 3])
    text = "".join(_class(rng, number) for number in range(count))
    objects = ["m0", "m1"]
    statements = [f"{m} = C{rng.randrange(count)}()" for m in objects]
    choices: list[tuple[Callable[..., str], int]] = [
        (_members, 5),
        (_registration, 5),
        (_hooks_by_hand, 3),
        (_call, 4),
        (_state, 5),
        (_listing, 3),
        (_whole, 3),
        (_parameter, 1),
    ]
    kinds = [kind for kind, weight in choices for _ in range(weight)]
    for number in range(rng.choice([5, 10, 15, 25])):
        m, other, kind = rng.choice(objects), rng.choice(objects), rng.choice(kinds)
        place = m if rng.random() < 0.75 else f"{m}.{rng.choice(CHILDREN)}"
        fresh = f"m{len(objects)}"
        if kind is _parameter:
            statement = _parameter(rng)
        elif kind in (_registration, _hooks_by_hand):
            statement = kind(rng, place, number)
        elif kind is _state:
            statement = _state(rng, m, other)
        elif kind is _whole:
            statement = _whole(rng, m, other, fresh)
            if statement.startswith(fresh):
                objects.append(fresh)
        else:
            statement = kind(rng, place)
        statements.append(statement)
    return Program(text, statements)
