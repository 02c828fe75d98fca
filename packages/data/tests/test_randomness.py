import pickle

import array_library
import numpy as np
import pytest

import plait_data
from plait_data import RandomSampler, random_split


def order(generator=None):
    return list(RandomSampler(range(1000), generator=generator))


def test_default_is_fresh_entropy():
    np.random.seed(0)
    first = order()
    np.random.seed(0)
    assert first != order()


def test_manual_seed_repeats_the_stream_and_none_ends_it():
    plait_data.manual_seed(3)
    first, second = order(), order()
    plait_data.manual_seed(3)
    assert [first, second] == [order(), order()]
    assert first != second
    plait_data.manual_seed(3)
    plait_data.manual_seed(None)
    assert first != order()


def test_the_seed_source_is_called_once_in_an_epoch():
    seeds = iter([5, 6, 5])
    assert plait_data.set_seed_source(lambda: next(seeds)) is None
    first, second, third = order(), order(), order()
    assert first == third != second
    assert next(seeds, None) is None


def test_manual_seed_goes_before_the_seed_source():
    def refuse():
        raise AssertionError("not asked")

    plait_data.set_seed_source(refuse)
    plait_data.manual_seed(0)
    assert len(order()) == 1000


def test_a_seed_source_registered_later_counts():
    sampler = RandomSampler(range(1000))
    plait_data.set_seed_source(lambda: 4)
    assert list(sampler) == list(sampler)


def test_int_seed_repeats_from_run_to_run_not_from_epoch_to_epoch():
    sampler = RandomSampler(range(1000), generator=8)
    first = list(sampler)
    assert first == order(8)
    assert first != list(sampler)


def test_numpy_generator_is_shared():
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    assert order(rng) == same.permutation(1000).tolist()
    assert order(rng) == same.permutation(1000).tolist()


def test_generator_of_another_library_is_drawn_from():
    generator = array_library.Generator(2)
    sampler = RandomSampler(range(1000), generator=generator)
    first, second = list(sampler), list(sampler)
    assert first != second
    generator.manual_seed(2)
    assert list(sampler) == first


def test_generator_without_randint_gives_its_seed():
    class Bare:
        def initial_seed(self):
            return 9

    class Seeded:
        seed = 9

    for generator in (Bare(), Seeded()):
        assert order(generator) == order(9)


def test_splits_draw_like_samplers():
    plait_data.manual_seed(1)
    first = random_split(range(50), [20, 30])[0].indices
    plait_data.manual_seed(1)
    assert first == random_split(range(50), [20, 30])[0].indices
    assert first != random_split(range(50), [20, 30])[0].indices


def test_samplers_pickle():
    sampler = RandomSampler(range(100), generator=5)
    assert list(pickle.loads(pickle.dumps(sampler))) == list(sampler)


@pytest.mark.parametrize("generator", ["7", 1.5, object()])
def test_generator_type_error(generator):
    with pytest.raises(TypeError, match=r"RandomSampler: `generator` must be a numpy.random.Gene"):
        RandomSampler(range(3), generator=generator)


def test_seed_errors():
    with pytest.raises(ValueError, match="manual_seed: `seed` must be >= 0 as a seed; got -1"):
        plait_data.manual_seed(-1)
    with pytest.raises(TypeError, match="manual_seed: `seed` must be an int; got float"):
        plait_data.manual_seed(1.0)
    with pytest.raises(ValueError, match="RandomSampler: `generator` must be >= 0"):
        RandomSampler(range(3), generator=-5)
    with pytest.raises(TypeError, match="set_seed_source: `source` must be a function"):
        plait_data.set_seed_source(5)
