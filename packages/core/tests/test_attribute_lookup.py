"""Attribute lookup in C gives the same as Python's own, for every kind of attribute and class."""

from __future__ import annotations

import collections
import functools
import gc
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from plait_core import attribute_lookup

KINDS = ("_parameters", "_buffers", "_modules")


class Holder:
    """Members in three dicts, as a module has them."""

    def __init__(self) -> None:
        for kind in KINDS:
            self.__dict__[kind] = {}

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__
        for kind in KINDS:
            if kind in attributes and name in attributes[kind]:
                return attributes[kind][name]
        raise AttributeError(name)


class Plain:
    def __get__(self, instance: object, owner: object) -> str:
        return "read"


class Data(Plain):
    def __set__(self, instance: Any, value: object) -> None:
        raise AttributeError("fixed")


class Body:
    """The members of both classes below."""

    constant = 7
    plain = Plain()
    data = Data()

    @property
    def absent(self) -> Any:
        raise AttributeError("absent")

    @property
    def wrong(self) -> Any:
        raise ValueError("wrong")

    @functools.cached_property
    def cached(self) -> str:
        return "cached"

    @staticmethod
    def static() -> str:
        return "static"

    def method(self) -> object:
        return self


def pair(**members: Any) -> tuple[type[Holder], type[Holder]]:
    """Return a class with lookup in C, and one with Python's."""
    fast = type("Fast", (Holder,), {**members})
    slow = type("Slow", (Holder,), {**members})
    assert attribute_lookup.install(fast, Holder.__getattr__)
    assert attribute_lookup.installed(fast) and not attribute_lookup.installed(slow)
    return fast, slow


def outcome(instance: Any, name: str) -> object:
    try:
        value = getattr(instance, name)
    except Exception as error:
        return type(error)
    return value() if callable(value) and name == "static" else type(value), str(value)[:5]


NAMES = ["constant", "plain", "data", "absent", "wrong", "cached", "static", "method"]
NAMES += ["own", "w", "__class__", "__dict__", "__getattr__", "nothing", "_parameters"]


class Name(str):
    pass


class Odd(dict):  # type: ignore[type-arg]
    def __contains__(self, key: object) -> bool:
        return key == "w"

    def __getitem__(self, key: object) -> object:
        return "odd"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mapping", [dict, collections.OrderedDict, Odd])
def test_the_same_for_every_kind_of_attribute(kind: str, mapping: Callable[..., Any]) -> None:
    body = {name: value for name, value in vars(Body).items() if not name.startswith("__")}
    fast, slow = pair(**body)
    body["cached"].__set_name__(fast, "cached")
    for members in ({}, dict.fromkeys(NAMES, object), {"w": 3}):
        for own in ({}, {"own": 1, "plain": 2, "data": 3, "cached": 4, "w": 5}):
            both = fast(), slow()
            for instance in both:
                instance.__dict__[kind] = mapping(members)
                instance.__dict__.update(own)
            for name in [*NAMES, *map(Name, NAMES)]:
                results = [outcome(instance, name) for instance in both]
                assert results[0] == results[1] or name == "__class__", name
                if name != "wrong":
                    there = [attribute_lookup.has(instance, name) for instance in both]
                    assert there == [hasattr(instance, name) for instance in both], name
                    continue
                for instance in both:
                    with pytest.raises(ValueError, match="wrong"):
                        attribute_lookup.has(instance, name)


def test_registries_are_searched_in_order_wherever_they_are() -> None:
    rng = random.Random(0)
    fast, slow = pair()
    for _ in range(200):
        entries = [(kind, {"x": kind, kind[1]: 1}) for kind in KINDS if rng.random() < 0.8]
        entries += [("other", 1)] * rng.randint(0, 2)
        rng.shuffle(entries)
        for cls in (fast, slow):
            instance = cls.__new__(cls)
            instance.__dict__.update(entries)
            first = next((kind for kind in KINDS if kind in dict(entries)), None)
            assert getattr(instance, "x", None) == first
            for letter in "pbm":
                assert hasattr(instance, letter) == (f"_{letter}" in str(entries))


def test_python_takes_lookup_back() -> None:
    base, _ = pair()
    child = type("Child", (base,), {})
    assert not attribute_lookup.installed(child)  # a class starts with Python's
    assert attribute_lookup.install(child, Holder.__getattr__)
    instance = child()
    instance._parameters["w"] = 1  # type: ignore[attr-defined]
    assert instance.w == 1
    base.__getattr__ = lambda self, name: "answered"  # type: ignore[method-assign]
    assert not attribute_lookup.installed(child)
    assert instance.w == "answered" and instance.nothing == "answered"
    del base.__getattr__
    assert instance.w == 1 and not hasattr(instance, "nothing")
    assert attribute_lookup.install(child, Holder.__getattr__) and instance.w == 1
    child.__getattribute__ = lambda self, name: 5  # type: ignore[method-assign,assignment]
    assert instance.w == 5 and not attribute_lookup.installed(child)
    del child.__getattribute__
    assert instance.w == 1
    assert attribute_lookup.install(child, Holder.__getattr__)
    other = type("Other", (Holder,), {"__getattr__": lambda self, name: "of other"})
    child.__bases__ = (other,)
    assert instance.w == "of other"


def test_only_importable_files_are_installed() -> None:
    own = type("Own", (Holder,), {"__getattr__": lambda self, name: name})
    watched = type("Watched", (Holder,), {"__getattribute__": object.__getattribute__})
    looking = type("Looking", (Holder,), {"__getattribute__": lambda self, name: name})
    local = type("Local", (Holder, threading.local), {})
    assert not attribute_lookup.install(own, Holder.__getattr__)
    assert attribute_lookup.install(watched, Holder.__getattr__)
    assert not attribute_lookup.install(looking, Holder.__getattr__)
    assert not attribute_lookup.install(local, Holder.__getattr__)
    assert not attribute_lookup.install(int, Holder.__getattr__)
    with pytest.raises(TypeError, match="`cls` must be a class"):
        attribute_lookup.install(3, Holder.__getattr__)  # type: ignore[arg-type]


def test_errors_of_keys_are_raised() -> None:
    class Key(str):
        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

        __hash__ = str.__hash__

    fast, slow = pair()
    for cls in (fast, slow):
        instance = cls()
        instance._parameters[Key("w")] = 1  # type: ignore[attr-defined]
        with pytest.raises(ZeroDivisionError):
            _ = instance.w


def test_references_are_kept_and_given_back() -> None:
    fast, _ = pair(data=Data(), plain=Plain(), absent=Body.absent)
    instance = fast()
    values = [object() for _ in range(4)]
    for kind, value in zip(KINDS, values, strict=False):
        instance.__dict__[kind][kind[1]] = value
    instance.__dict__["own"] = values[3]
    watched = [*values, instance, fast, instance.__dict__, Holder.__getattr__]
    watched += [instance.__dict__[kind] for kind in KINDS]
    names = ["p", "b", "m", "own", "data", "plain", "absent", "nothing", "__class__"]
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(2000):
        for name in names:
            getattr(instance, name, None)
    gc.collect()
    assert [sys.getrefcount(each) for each in watched] == before


def test_members_that_other_threads_replace() -> None:
    fast, _ = pair()
    instance = fast()
    instance._modules["w"] = 0  # type: ignore[attr-defined]
    done = threading.Event()

    def replace() -> None:
        number = 0
        while not done.is_set():
            number += 1
            instance._modules["w"] = [number]  # type: ignore[attr-defined]
            instance.__dict__["_modules"] = {"w": [number]}
            instance.__dict__["_parameters"] = {str(i): i for i in range(number % 30)}

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(100_000):
            assert instance.w is not None
    finally:
        done.set()
        thread.join()
