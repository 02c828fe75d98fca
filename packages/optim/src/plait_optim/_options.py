r"""Common options of optimizers, and the declaration of further options.

An optimizer declares its options once, as the parameters of its `__init__`: name, type, default.
Everything else follows from the name:

- the check and the line of documentation of an option that many have (`lr`, `betas`, `eps`,
  `maximize`, ...) stand in `COMMON`; an optimizer checks only its own options in `__init__`;
- the defaults of its groups are the arguments of `__init__`: `default_options(self, locals())`;
- `document_options` adds the lines of common options to the section ``Args`` of the docstring,
  which has the lines of the optimizer's own options; a line there takes precedence.

`Elementwise` has the declarations of state and of the operator's arguments.

PyTorch's groups list options in another order than its signatures do, and saved files contain this
order: an optimizer whose two orders differ names the options that come first in its groups in
`Optimizer.first_in_groups`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from plait_abi.arguments import name_constructor


def has_text(value: Any) -> bool:
    """Whether an option is a text, or a sequence with one: ``float`` would read it as a number."""
    if isinstance(value, (tuple, list)):
        return any(has_text(each) for each in value)
    return isinstance(value, (str, bytes, bytearray))


def refuse_text(owner: str, name: str, value: Any) -> None:
    """Raise for a text where an option is a number."""
    if has_text(value):
        raise TypeError(f"{owner}: `{name}` must be a number, got {type(value).__name__}")


def number_of(group: dict[str, Any], name: str, at: int | None = None) -> float:
    """Return an option of a group, or one of its numbers, as a float; texts are no numbers."""
    value = group[name] if at is None else group[name][at]
    if type(value) is float:
        return value
    refuse_text("step", name, value)
    return float(value)


def check_arguments(cls: type, constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Return a constructor that names an argument of the wrong kind, and accepts a text only where
    the annotation has ``str`` or is ``Any``.
    """
    names = [name for name in constructor.__annotations__ if name != "return"]
    free = {
        name for name in names if re.search(r"\b(str|Any)\b", constructor.__annotations__[name])
    }
    call = name_constructor(cls, constructor)

    def check(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if name not in free:
                refuse_text(cls.__name__, name, value)
        call(self, *args, **kwargs)

    # programs read the names of a constructor's arguments from the variables of its code
    variables = " = ".join((*names, "None"))
    lines = ("def checking(self, *args, **kwargs):", "  check(self, args, kwargs)")
    namespace: dict[str, Any] = {"check": check}
    exec("\n".join((*lines, "  if False:", f"    {variables}")), namespace)
    return functools.wraps(constructor)(namespace["checking"])


def not_negative(label: str, value: Any) -> None:
    """Raise for an option that is not a number, or is below 0 or nan."""
    try:
        if has_text(value):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{label} must be a number; got {value!r}") from None
    if not number >= 0.0:
        raise ValueError(f"Invalid {label}: {value}")


def _fractions(betas: tuple[float, float]) -> None:
    for index, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


class Option(NamedTuple):
    """The meaning of an option in every optimizer that has it under this name."""

    text: str
    """The line in the documentation."""

    check: Callable[[Any], None] | None = None
    """A function that raises for an invalid value."""

    supported: bool = True
    """Whether it may be true in every optimizer; other flags may in those that name them in
    `Optimizer.supports`."""


def _number(text: str, label: str) -> Option:
    return Option(text, lambda value: not_negative(label, value))


COMMON = {
    "params": Option("real floating arrays, or groups of them; see `Optimizer`."),
    "lr": _number("learning rate, at least 0.", "learning rate"),
    "betas": Option(r":math:`\beta_1, \beta_2`, each in [0, 1).", _fractions),
    "eps": _number(r":math:`\epsilon`, at least 0.", "epsilon value"),
    "momentum": _number(r":math:`\mu`, at least 0.", "momentum value"),
    "weight_decay": _number(r":math:`\lambda`, at least 0.", "weight_decay value"),
    "decoupled_weight_decay": Option("decay weights as `AdamW` does."),
    "maximize": Option("go up instead of down."),
    "foreach": Option("accepted as in PyTorch; every step is fused."),
    "fused": Option("accepted as in PyTorch; every step is fused."),
    "capturable": Option("must be False.", supported=False),
    "differentiable": Option("must be False.", supported=False),
}
"""The options that several optimizers have, by name."""


def init_options(local: dict[str, Any]) -> dict[str, Any]:
    """Return the options among the ``locals()`` of an `__init__` that has bound nothing yet."""
    return {
        name: value
        for name, value in local.items()
        if name not in ("self", "params", "__class__")  # `__class__` is there because of `super()`
    }


def default_options(
    optimizer: Any, local: dict[str, Any], *, own: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the arguments of an optimizer's `__init__` as the defaults of its groups.

    Args:
        optimizer: the optimizer, whose class says which options are the first in its groups.
        local: the ``locals()`` of `__init__`, before it has bound anything.
        own: options with the name of a common one but another meaning, which are not checked here.

    Raises:
        TypeError, ValueError: if a common option is out of its range.
        NotImplementedError: if an unsupported flag is true.
    """
    options = init_options(local)
    for name, value in options.items():
        option = None if name in own else COMMON.get(name)
        if option is not None and option.check is not None:
            option.check(value)
        supported = option is None or option.supported or name in optimizer.supports
        if value and not supported:
            raise NotImplementedError(f"{type(optimizer).__name__}: {name} steps are not supported")
    return {**{name: options[name] for name in optimizer.first_in_groups}, **options}


def document_options(optimizer: type) -> None:
    """Complete the sections ``Args`` and ``Raises`` of an optimizer's docstring.

    The parameters are in the order of the signature. A docstring without an example is unchanged.

    Raises:
        TypeError: if a parameter has no line, there or in `COMMON`, or a line has no parameter.
    """
    doc = optimizer.__doc__ or ""  # none with python -OO
    example = re.search(r"^( *)Example:\n", doc, re.MULTILINE)
    if example is None:
        return
    margin = example[1]
    section = re.search(rf"^{margin}Args:\n((?:.+\n)*)\n", doc, re.MULTILINE)
    start = section.start() if section else example.start()
    end = section.end() if section else start
    own_lines = section[1] if section else ""
    texts = {}
    for entry in re.split(rf"^{margin}    (?! )", own_lines, flags=re.MULTILINE)[1:]:
        several, _, text = entry.partition(": ")
        texts.update(dict.fromkeys(several.split(", "), text))
    # `__annotations__`, as importing `inspect` would slow the import of this package
    names = [name for name in vars(optimizer)["__init__"].__annotations__ if name != "return"]
    missing = [name for name in names if name not in texts and name not in COMMON]
    unknown = [name for name in texts if name not in names]
    if missing or unknown:
        raise TypeError(
            f"{optimizer.__name__}: options without a line in its docstring: {missing}; "
            f"lines without an option: {unknown}"
        )
    alike: dict[str, list[str]] = {}
    for name in names:
        text = texts[name] if name in texts else COMMON[name].text + "\n"
        alike.setdefault(text, []).append(name)
    lines = [f"{margin}    {', '.join(several)}: {text}" for text, several in alike.items()]
    rest = doc[end:]
    if f"{margin}Raises:\n" not in doc:
        raises = f"{margin}Raises:\n{margin}    ValueError: if an option is out of its range.\n\n"
        at = example.start() - end
        rest = rest[:at] + raises + rest[at:]
    optimizer.__doc__ = "".join([doc[:start], f"{margin}Args:\n", *lines, "\n", rest])
