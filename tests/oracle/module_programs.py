"""Random programs about attributes of modules, to be run by any library with PyTorch's names.

A program is a text of classes and a list of statements; `module_program_runs` executes both and
tells what each statement showed: values by kind, contents and identity, or an exception's type.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["NAMES", "Program", "generate"]

NAMES = ("a", "b", "c", "weight")
STOCK = ("Identity()", "LayerNorm(1)", "BatchNorm1d(1)", "Sequential()", "ModuleList()")


class Program(NamedTuple):
    """Source of classes, and statements about their instances."""

    classes: str
    statements: list[str]

    def __str__(self) -> str:
        return self.classes + "\n" + "\n".join(self.statements)


# ---- classes -----------------------------------------------------------------------------------


def _value(rng: random.Random) -> str:
    return rng.choice(
        [
            "P()",
            "P()",
            "T()",
            "nn.Buffer(T())",
            "nn.Buffer(T(), persistent=False)",
            f"nn.{rng.choice(STOCK)}",
            "None",
            "5",
            "'text'",
        ]
    )


def _name(rng: random.Random) -> str:
    return rng.choice(NAMES)


def _property(rng: random.Random, name: str) -> str:
    other = _name(rng)
    read = rng.choice(
        [
            f"return self.__dict__.get('_{name}', 'unset')",
            "raise AttributeError('refused')",
            "raise ValueError('refused')",
            f"return self._parameters.get('{other}')",
            f"return self.{other}",
        ]
    )
    text = f"    @property\n    def {name}(self):\n        {read}\n"
    if rng.random() < 0.5:
        store = rng.choice([f"self.__dict__['_{name}'] = value", f"self.{other} = value"])
        text += f"    @{name}.setter\n    def {name}(self, value):\n        {store}\n"
    if rng.random() < 0.3:
        text += f"    @{name}.deleter\n    def {name}(self):\n        log('deleted')\n"
    return text


def _descriptor(rng: random.Random, name: str) -> str:
    result = rng.choice(["Reads()", "Stores()", "functools.cached_property(cached)"])
    extra = f"    {name}.__set_name__(None, '{name}')\n" if "cached" in result else ""
    return f"    {name} = {result}\n{extra}"


def _getattr(rng: random.Random, name: str) -> str:
    body = rng.choice(
        [
            "return super().__getattr__(name)",
            f"if name == '{name}':\n            return 'made'\n        "
            "return super().__getattr__(name)",
            "result = super().__getattr__(name)\n        "
            "return ('seen', result) if name in NAMES else result",
            "if '_own' in self.__dict__ and name in self.__dict__['_own']:\n            "
            "return self.__dict__['_own'][name]\n        return super().__getattr__(name)",
            f"if name == '{name}':\n            raise AttributeError(name)\n        "
            "return nn.Module.__getattr__(self, name)",
        ]
    )
    return f"    def __getattr__(self, name):\n        note('getattr', name)\n        {body}\n"


def _getattribute(rng: random.Random, name: str) -> str:
    body = rng.choice(
        [
            "return super().__getattribute__(name)",
            "return object.__getattribute__(self, name)",
            f"if name == '{name}':\n            return 'first'\n        "
            "return super().__getattribute__(name)",
            f"if name == '{name}':\n            raise AttributeError(name)\n        "
            "return super().__getattribute__(name)",
        ]
    )
    return f"    def __getattribute__(self, name):\n        note('get', name)\n        {body}\n"


def _setattr(rng: random.Random, name: str, module: bool = True) -> str:
    other = _name(rng)
    # behind Module in an MRO, Module's own would call it again
    base = "nn.Module" if module else "object"
    body = rng.choice(
        [
            "super().__setattr__(name, value)",
            f"super().__setattr__('{other}' if name == '{name}' else name, value)",
            "object.__setattr__(self, name, value)",
            f"if name == '{name}':\n            own = self.__dict__.setdefault('_own', {{}})"
            "\n            own[name] = value\n"
            "        else:\n            super().__setattr__(name, value)",
            f"if name == '{name}':\n            self.__dict__[name] = value"
            f"\n        else:\n            {base}.__setattr__(self, name, value)",
        ]
    )
    return f"    def __setattr__(self, name, value):\n        note('set', name)\n        {body}\n"


def _delattr(rng: random.Random, name: str) -> str:
    body = rng.choice(
        [
            "super().__delattr__(name)",
            "object.__delattr__(self, name)",
            f"if name != '{name}':\n            super().__delattr__(name)",
            f"if name == '{name}':\n            self.__dict__.get('_own', {{}}).pop(name, None)"
            "\n        else:\n            super().__delattr__(name)",
        ]
    )
    return f"    def __delattr__(self, name):\n        note('del', name)\n        {body}\n"


def _register(rng: random.Random, name: str) -> str:
    method = rng.choice(["register_parameter", "register_buffer", "add_module", "register_module"])
    rest = ", persistent=True" if method == "register_buffer" else ""
    argument = ", persistent" if method == "register_buffer" else ""
    return (
        f"    def {method}(self, name, value{rest}):\n"
        f"        note('{method}', name)\n"
        f"        super().{method}(name, value{argument})\n"
    )


def _plain(rng: random.Random, name: str) -> str:
    return rng.choice(
        [
            f"    {name} = 7\n",
            f"    {name} = None\n",
            f"    {name} = P()\n",
            f"    {name} = nn.Identity()\n",
            f"    {name}: int\n",
            f"    def {name}(self):\n        return 'called'\n",
            f"    @staticmethod\n    def {name}():\n        return 'static'\n",
            f"    __slots__ = ('{name}',)\n",
            "    def __init_subclass__(cls, **more):\n        log('subclass')\n",
            "    def __dir__(self):\n        return [*super().__dir__(), 'more']\n",
        ]
    )


FEATURES: list[tuple[Callable[[random.Random, str], str], int]] = [
    (_plain, 4),
    (_property, 4),
    (_descriptor, 2),
    (_getattr, 3),
    (_getattribute, 1),
    (_setattr, 2),
    (_delattr, 2),
    (_register, 1),
]
MEMBERS = [member for member, weight in FEATURES for _ in range(weight)]


def _init(rng: random.Random, module: bool, stock: bool) -> str:
    before = [_statement_on(rng, "self") for _ in range(rng.choice([0, 0, 0, 0, 1]))]
    after = [_statement_on(rng, "self") for _ in range(rng.choice([0, 1, 2, 3]))]
    call = "super().__init__(*args, **more)"
    if (not module and rng.random() < 0.5) or rng.random() < 0.04:
        call = "pass"
    if module and not stock and rng.random() < 0.1:
        call = "nn.Module.__init__(self)"
    lines = [*before, call, *after]
    # an error in one statement must not hide what the next ones do
    text = "".join(
        f"        {line}\n" if line == call else f"        with caught():\n            {line}\n"
        for line in lines
    )
    return f"    def __init__(self, *args, **more):\n{text}"


def _class(rng: random.Random, number: int, modules: list[str], others: list[str]) -> str:
    """Make a class; it is added to the modules or to the others."""
    module = bool(others or modules) or rng.random() < 0.7
    bases = [name for name in others if rng.random() < 0.6]
    stock = module and bool(modules)  # perhaps
    if module and modules and rng.random() < 0.8:
        bases += rng.sample(modules, min(len(modules), rng.choice([1, 1, 1, 2])))
    elif module:
        stock = rng.random() < 0.25
        bases.append(f"nn.{rng.choice(STOCK).partition('(')[0]}" if stock else "nn.Module")
    if rng.random() < 0.05:
        bases.append(rng.choice(["dict", "collections.abc.Sized", "Generic"]))
    rng.shuffle(bases)
    text = f"class C{number}({', '.join(bases)}):\n"
    if rng.random() < 0.05:
        text += "    call_super_init = True\n"
    members = []
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        make = rng.choice(MEMBERS)
        name = _name(rng)
        members.append(_setattr(rng, name, module) if make is _setattr else make(rng, name))
    if rng.random() < 0.6:
        members.append(_init(rng, module, stock))
    if rng.random() < 0.3:
        read = ", ".join(f"self.{_name(rng)}" for _ in range(rng.choice([1, 2])))
        members.append(f"    def forward(self, *args):\n        return ({read},)\n")
    (modules if module else others).append(f"C{number}")
    return text + ("".join(members) or "    pass\n")


# ---- statements --------------------------------------------------------------------------------


def _statement_on(rng: random.Random, m: str) -> str:
    """An assignment, a registration or a deletion."""
    name, value = _name(rng), _value(rng)
    kind = rng.choice(["_parameters", "_buffers", "_modules"])
    # a parameter as a buffer: its conversion is recorded, and we pickle no recorded tensors
    tensor = rng.choice(["T()", "T()", "None", value.replace("P", "T")])
    return rng.choice(
        [
            f"{m}.{name} = {value}",
            f"{m}.{name} = {value}",
            f"{m}.{name} = {value}",
            f"{m}.{name} = P()",
            f"{m}.{name} = nn.LayerNorm(1)",
            f"{m}.register_parameter('{name}', {rng.choice(['P()', 'None', value])})",
            f"{m}.register_buffer('{name}', {tensor}, persistent={rng.random() < 0.6})",
            f"{m}.register_buffer('{name}', {tensor})",
            f"{m}.add_module('{name}', {rng.choice(['nn.Identity()', 'None', value])})",
            f"{m}.register_module('{name}', {rng.choice(['nn.Identity()', 'None', value])})",
            f"del {m}.{name}",
            f"{m}.__dict__['{name}'] = {value}",
            f"{m}.__dict__.pop('{name}', None)",
            f"{m}.{kind}['{name}'] = {_member(rng, kind)}",
            f"{m}.{kind}.pop('{name}', None)",
        ]
    )


def _member(rng: random.Random, kind: str) -> str:
    return {
        "_parameters": rng.choice(["P()", "None"]),
        "_buffers": rng.choice(["T()", "None"]),
        "_modules": rng.choice(["nn.Identity()", "nn.LayerNorm(1)", "None"]),
    }[kind]


def _reading(rng: random.Random, m: str) -> str:
    name = _name(rng)
    cls = f"type({m})"
    return rng.choice(
        [
            f"show({m}.{name})",
            f"show({m}.{name})",
            f"show({m}.{name})",
            f"show(hasattr({m}, '{name}'))",
            f"show(getattr({m}, '{name}', 'default'))",
            f"show(getattr({m}, Name('{name}')))",
            f"show(object.__getattribute__({m}, '{name}'))",
            f"show(nn.Module.__getattr__({m}, '{name}'))",
            f"show({m}.__getattr__('{name}'))",
            f"show(super({cls}, {m}).__getattr__('{name}'))",
            f"show({m}.get_parameter('{name}'))",
            f"show({m}.get_buffer('{name}'))",
            f"show({m}.get_submodule('{name}'))",
            f"show({m}.get_submodule('{name}.{_name(rng)}'))",
            f"show({m}(T()))",
        ]
    )


def _listing(rng: random.Random, m: str) -> str:
    flags = f"remove_duplicate={rng.random() < 0.7}"
    return rng.choice(
        [
            f"show(list({m}.named_parameters(recurse={rng.random() < 0.7})))",
            f"show(list({m}.named_parameters({flags})))",
            f"show(list({m}.named_buffers()))",
            f"show(list({m}.named_modules({flags})))",
            f"show(list({m}.named_children()))",
            f"show(list({m}.parameters()))",
            f"show(dict({m}.state_dict(keep_vars={rng.random() < 0.3})))",
            f"show(sorted({{n for n in dir({m}) if n in NAMES or n == 'more'}}))",
            f"show([n for n in {m}.__dict__ if n in NAMES])",
            f"show(sorted({m}._non_persistent_buffers_set))",
        ]
    )


def _class_change(rng: random.Random, m: str, cls: str) -> str:
    name = _name(rng)
    value = rng.choice(["3", "property(lambda self: 'new')", "Reads()", "Stores()", "None"])
    return rng.choice(
        [
            f"setattr({cls}, '{name}', {value})",
            f"delattr({cls}, '{name}')",
            f"{cls}.__getattr__ = answering",
            f"{cls}.__getattr__ = lambda self, name: forwarded(self, name)",
            f"del {cls}.__getattr__",
            f"{cls}.__getattribute__ = lambda self, name: watching(self, name)",
            f"del {cls}.__getattribute__",
            f"{cls}.__setattr__ = lambda self, name, value: kept(self, name, value)",
            f"del {cls}.__setattr__",
            f"{m}.__class__ = {cls}",
            f"{cls}.__bases__ = (Mixin, *{cls}.__bases__)",
            f"{cls}.__bases__ = tuple(b for b in {cls}.__bases__ if b is not Mixin)",
        ]
    )


def _whole(rng: random.Random, m: str, other: str, fresh: str) -> str:
    name, kind = _name(rng), rng.choice(["_parameters", "_buffers", "_modules"])
    return rng.choice(
        [
            f"{fresh} = copy.copy({m}); show({fresh})",
            f"{fresh} = copy.deepcopy({m}); show({fresh})",
            f"{fresh} = pickle.loads(pickle.dumps({m})); show({fresh})",
            f"show({m}.load_state_dict({other}.state_dict(), strict=False, "
            f"assign={rng.random() < 0.5}))",
            f"{m}.load_state_dict({{'{name}': T()}}, strict=False, assign={rng.random() < 0.5})",
            f"{m}.double(); show(list({m}.parameters()), list({m}.buffers()))",
            f"{m}.apply(lambda module: note('apply', '{name}'))",
            f"{m}.requires_grad_(False); show(list({m}.parameters()))",
            f"{m}.train(False); show({m}.training)",
            f"{m}.{kind} = collections.OrderedDict({m}.{kind})",
            f"{m}.__dict__['{kind}'] = Odd({m}.__dict__['{kind}'])",
            f"{m}.__dict__['{kind}'] = dict({m}.__dict__.pop('{kind}'))",
            f"{m}.__dict__.pop('{kind}')",
            f"{m}.{kind} = {{}}",
            f"nn.Module.__init__({m})",
            f"{m}.set_submodule('{name}', nn.Identity())",
            f"{m}.set_submodule('{name}.{_name(rng)}', nn.Identity())",
            f"{m}.{name} = {other}" if other > m else f"{m}.{name} = 3",  # no cycles
            f"if tensor({m}, '{name}'): "
            f"parametrize.register_parametrization({m}, '{name}', Twice())",
            f"if parametrize.is_parametrized({m}, '{name}'): "
            f"parametrize.remove_parametrizations({m}, '{name}', {rng.random() < 0.7})",
            f"if tensor({m}, '{name}'): show(functional_call({m}, {{'{name}': T()}}, (T(),)))",
            f"if parameter({m}, '{name}'): weight_norm({m}, '{name}', None)",
            f"if parameter({m}, '{name}_g'): remove_weight_norm({m}, '{name}')",
            f"object.__setattr__({m}, '{name}', {_value(rng)})",
            f"object.__delattr__({m}, '{name}')",
            f"nn.Module.__setattr__({m}, '{name}', {_value(rng)})",
            f"nn.Module.__delattr__({m}, '{name}')",
            f"{m}.__dict__.update({name}={_value(rng)}, {_name(rng)}_=3)",
            f"{m}.__setstate__({other}.__getstate__())",
        ]
    )


def generate(rng: random.Random) -> Program:
    """Make a program."""
    known: list[str] = []
    others: list[str] = []
    text = ""
    for number in range(rng.choice([1, 1, 2, 2, 3, 4])):
        text += _class(rng, number, known, others)
    if not known:
        text += _class(rng, 9, known, others)
    objects = ["m0"]
    statements = [f"m0 = {known[-1]}(); show(m0)"]
    for _ in range(rng.choice([3, 6, 10, 15])):
        m = rng.choice(objects)
        choice = rng.random()
        if choice < 0.32:
            statements.append(_statement_on(rng, m))
        elif choice < 0.6:
            statements.append(_reading(rng, m))
        elif choice < 0.72:
            statements.append(_listing(rng, m))
        elif choice < 0.8:
            statements.append(_class_change(rng, m, rng.choice(known)))
        elif choice < 0.85:
            fresh = f"m{len(objects)}"
            objects.append(fresh)
            statements.append(f"{fresh} = {rng.choice(known)}(); show({fresh})")
        else:
            fresh = f"m{len(objects)}"
            statement = _whole(rng, m, rng.choice(objects), fresh)
            if statement.startswith(fresh):
                objects.append(fresh)
            statements.append(statement)
    for m in objects:
        statements += [f"show({m}.{name})" for name in NAMES]
        statements += [f"show(state({m}))"]
    return Program(text, statements)
