"""Draws: the stream that only a key repeats, and laws that are exactly those proved."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import sparse, special, stats

import cvxprivacy as cpv
from cvxprivacy.release import draws as module
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import BLOCK, Draws, numerators
from cvxprivacy.tables import TableSchema
from tests.engines import made
from tests.lengths import some_at_length

ONE = 2**52
SALT = b"cvxprivacy draws 1"


def key_of(seed: int) -> bytes:
    """Return the key of a typed seed, as docs/reference/files.md has it."""
    return hashlib.scrypt(hex(seed).encode(), salt=SALT, n=2**14, r=8, p=1, dklen=32)


# ---- the stream --------------------------------------------------------------------------


def bits(words: np.ndarray) -> np.ndarray:
    """Return the 52 bits of each number, shape (numbers, 52)."""
    return (words[:, None] >> np.arange(52)) & 1


SIZE = 200_000


@pytest.fixture(scope="module", params=["place", "name", "partition"])
def numbers(request) -> np.ndarray:
    """Return numbers of a fixed key, so that no test of them is a matter of luck."""
    if request.param == "partition":
        return Draws(42).children(3)[1](SIZE, None)[0]
    names = range(SIZE) if request.param == "name" else None
    return Draws(42)(SIZE, names)[0]


def test_every_bit_is_as_often_one_as_zero(numbers):
    ones = bits(numbers).sum(axis=0)
    z = (ones - SIZE / 2) / math.sqrt(SIZE / 4)
    assert numbers.min() >= 0
    assert numbers.max() < ONE
    assert np.abs(z).max() < 4.5
    assert stats.kstest(z, "norm").pvalue > 1e-3


def test_every_bit_has_as_many_runs_as_chance_makes(numbers):
    changes = (np.diff(bits(numbers), axis=0) != 0).sum(axis=0)
    z = (changes - (SIZE - 1) / 2) / math.sqrt((SIZE - 1) / 4)
    assert np.abs(z).max() < 4.5
    assert stats.kstest(z, "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    "lag", some_at_length([1, 2, 7, BLOCK // 8], 2)
)  # the last: the next block of bytes
def test_no_bit_goes_with_itself_or_another_later(numbers, lag):
    signs = 2.0 * bits(numbers) - 1
    z = signs[:-lag].T @ signs[lag:] / math.sqrt(SIZE - lag)
    assert np.abs(z).max() < 5  # of 52² pairs
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3


def test_no_two_bits_of_a_number_go_together(numbers):
    signs = 2.0 * bits(numbers) - 1
    z = (signs.T @ signs)[np.triu_indices(52, 1)] / math.sqrt(SIZE)
    assert np.abs(z).max() < 5
    assert stats.kstest(z, "norm").pvalue > 1e-3


def test_numbers_are_spread_evenly(numbers):
    counts = np.bincount(numbers >> 42, minlength=1024)
    assert stats.chisquare(counts).pvalue > 1e-3
    pairs = np.bincount((numbers[::2] >> 47) * 32 + (numbers[1::2] >> 47), minlength=1024)
    assert stats.chisquare(pairs).pvalue > 1e-3
    assert len(np.unique(numbers)) == SIZE


def test_whoever_has_the_seed_draws_again_with_the_standard_library():
    size, key = 3 * BLOCK // 8 // 2, key_of(7)
    stream = b"".join(
        hashlib.shake_256(key + SALT + b" letters 0 %d" % block).digest(BLOCK) for block in (0, 1)
    )
    words = [int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(size)]
    assert Draws(7)(size, None)[0].tolist() == [word >> 12 for word in words]
    assert Draws(7)(size // 2, None, each=2).T.ravel().tolist() == [word >> 12 for word in words]
    names = [5, "fünf", 2.0, 1.5]
    digests = [
        hashlib.blake2b(text.encode(), digest_size=16, key=key).digest()
        for text in ("5", "fünf", "2", "1.5")
    ]
    pairs = [[int.from_bytes(d[i : i + 8], "little") >> 12 for d in digests] for i in (0, 8)]
    assert Draws(7)(4, names, each=2).tolist() == pairs
    (child,) = Draws(7).children(1)
    block = hashlib.shake_256(key + SALT + b" letters 1 0").digest(8)
    assert child(1, None).tolist() == [[int.from_bytes(block, "little") >> 12]]


@pytest.mark.parametrize("each", [1, 2])
def test_a_record_has_its_numbers_wherever_its_batch_begins(each):
    draws, size = Draws(3), 3 * BLOCK // 8
    integers = draws(size, None, 0, each)
    for first, stop in [(0, 1), (1, 2), (BLOCK // 8 - 1, BLOCK // 8 + 1), (17, size), (size, size)]:
        part = draws(stop - first, None, first, each)
        assert np.array_equal(part, integers[:, first:stop])


def test_streams_of_partitions_purposes_and_seeds_have_nothing_in_common():
    draws = Draws(3)
    streams = [draws, *draws.children(5), Draws(4), Draws(None), Draws(None)]
    streams.append(Draws(np.random.default_rng(3)))
    letters = np.concatenate([each(1000, None)[0] for each in streams])
    assert len(np.unique(letters)) == len(letters)
    matrix = np.array([each(1000, None)[0] for each in streams]) / ONE - 0.5
    z = (matrix @ matrix.T)[np.triu_indices(len(matrix), 1)] * 12 / math.sqrt(1000)
    assert np.abs(z).max() < 4.5
    assert len({draws.derived("a"), draws.derived("b"), Draws(4).derived("a"), key_of(3)}) == 4
    assert np.array_equal(draws.children(2)[1](9, None), Draws(3).children(4)[1](9, None))
    by_name = [each(9, range(9)) for each in (draws, *draws.children(2))]
    assert np.array_equal(by_name[0], by_name[1])
    assert np.array_equal(by_name[0], by_name[2])


def test_a_generator_gives_a_key_and_moves_on_by_it_alone():
    rng, twin = (np.random.default_rng(5) for _ in range(2))
    draws = Draws(rng)
    assert rng.bit_generator.state == twin.bit_generator.state  # nothing is drawn as yet
    first = draws(10, None)
    assert (draws._secret(), rng.bytes(4)) == (twin.bytes(32), twin.bytes(4))
    assert not np.array_equal(Draws(rng)(10, None), first)


@pytest.mark.parametrize("seed", [0, 3, np.uint8(3), 2**128 - 1, 10**5000], ids=range(5))
def test_a_typed_seed_is_stretched_once(seed, monkeypatch):
    module._stretched.cache_clear()
    expected = key_of(int(seed))
    assert Draws(seed)._secret() == expected
    monkeypatch.delattr(hashlib, "scrypt")
    assert Draws(int(seed))._secret() == expected
    module._stretched.cache_clear()


def test_normal_numbers_are_normal():
    normal = Draws(1).normals(SIZE // 4, 4)
    assert stats.kstest(normal.ravel(), "norm").pvalue > 1e-3
    z = (np.corrcoef(normal.T) - np.eye(4)) * math.sqrt(len(normal))
    assert np.abs(z).max() < 4.5
    assert np.array_equal(Draws(1).normals(5, 4), normal[:5])
    words = Draws(1)._words("normals", 4)
    sizes = [-special.ndtri(((int(w) >> 1) + 0.5) / 2**64) for w in words]
    signs = [-1 if w & 1 else 1 for w in words.tolist()]
    assert normal[0] == pytest.approx([s * z for s, z in zip(signs, sizes, strict=True)], rel=1e-12)


@pytest.mark.parametrize(
    ("word", "value"), [(0, 9.155), (1, -9.155), (2**64 - 2, 0.0), (2**64 - 1, 0.0)]
)
def test_the_tails_of_normal_numbers_end_where_they_are_said_to(word, value, monkeypatch):
    words = np.array([word], np.uint64)
    monkeypatch.setattr(Draws, "_words", lambda self, purpose, size: words)
    assert Draws(1).normals(1, 1)[0, 0] == pytest.approx(value, abs=1e-3)


# ---- laws in whole numbers ---------------------------------------------------------------


def drawn_law(channel: Channel, row: int) -> list[Fraction]:
    """Return how many of the 2⁵² numbers meet each output: by the edges that are said, looked at.

    The draw never falls as the number grows, so that the numbers beside the edges show all others.
    """
    laws = channel._numerators
    law = (laws[[row]].toarray()[0] if sparse.issparse(laws) else laws[row]).tolist()
    ends = list(itertools.accumulate(law))
    assert ends[-1] == ONE
    assert min(law) >= 0
    at = sorted({v for e in [0, *ends] for v in (e - 1, e, e + 1) if 0 <= v < ONE})
    drawn = channel._draw(np.full(len(at), row), np.array([at]))
    expected = [next(y for y, end in enumerate(ends) if v < end) for v in at]
    assert drawn.tolist() == expected
    return [Fraction(k, ONE) for k in law]


def table(cells: int = 6) -> cpv.DiscreteSource:
    pmf = np.random.default_rng(2).dirichlet(np.ones(3 * cells)).reshape(3, cells)
    return cpv.DiscreteSource(pmf)


def with_side() -> cpv.DiscreteSource:
    return cpv.DiscreteSource(np.random.default_rng(4).dirichlet(np.ones(18)).reshape(3, 3, 2))


SOLVED = {
    "budget": lambda: cpv.PrivacyDistortion(table(), cpv.hamming(6), 0.2),
    "both seen": lambda: cpv.PrivacyDistortion(table(), cpv.hamming(6), 0.2, encoder="wx"),
    "t-closeness": lambda: cpv.MinimumDistortion(table(), cpv.hamming(6), [cpv.TCloseness(0.1)]),
    "local privacy": lambda: cpv.MinimumDistortion(table(), cpv.hamming(6), [cpv.LocalPrivacy(1)]),
    "maximal leakage": lambda: cpv.MinimumDistortion(
        table(), cpv.hamming(6), [cpv.MaximalLeakage(0.1)]
    ),
    "strategies": lambda: cpv.RateDistortionEquivocation(
        with_side(), cpv.hamming(3), 0.2, minimize="leakage", side_information="decoder"
    ),
    "side seen": lambda: cpv.RateDistortionEquivocation(
        with_side(), cpv.hamming(3), 0.2, minimize="leakage", side_information="both"
    ),
}


@pytest.mark.parametrize("name", SOLVED)
def test_the_probabilities_drawn_are_exactly_those_proved(name, tmp_path):
    solution = SOLVED[name]().solve()
    proof = solution.certificate.to_json(tmp_path / "proof.json")
    primal, channel = json.loads(proof.read_text())["primal"], solution.channel
    assert primal["denominator"] == ONE
    assert not channel.arbitrary.any()
    loaded = Channel.load(channel.save(tmp_path / "channel.json"))
    rows = zip(primal["outputs"], primal["numerators"], strict=True)
    for row, (places, weights) in enumerate(rows):
        proved = [Fraction(0)] * len(channel.outputs)
        for place, weight in zip(places, weights, strict=True):
            proved[place] = Fraction(weight, ONE)
        assert drawn_law(channel, row) == drawn_law(loaded, row) == proved


def test_those_of_a_sparse_channel_are_exactly_those_proved(tmp_path):
    shares = np.random.default_rng(1).dirichlet(np.full(30, 0.2), 12)
    shares[shares < 0.05] = 0
    integers = np.rint(shares / shares.sum(axis=1, keepdims=True) * ONE).astype(np.int64)
    integers[np.arange(12), integers.argmax(axis=1)] += ONE - integers.sum(axis=1)
    matrix = sparse.csr_array(integers / ONE)
    channel = Channel(matrix, inputs=range(12), outputs=range(30))
    again = Channel.load(channel.save(tmp_path / "channel.json"))
    dense = Channel(matrix.toarray(), inputs=range(12), outputs=range(30))
    for row in range(12):
        law = [Fraction(int(k), ONE) for k in integers[row]]
        assert drawn_law(channel, row) == drawn_law(again, row) == drawn_law(dense, row) == law
    records = np.random.default_rng(2).integers(12, size=5_000)
    assert np.array_equal(channel.apply(records, seed=1), dense.apply(records, seed=1))


def test_one_after_another_is_rounded_to_the_exact_product():
    one = SOLVED["budget"]().solve().channel
    both = one.then(one)
    integers = [[Fraction(k) for k in row] for row in one.matrix.tolist()]
    for row in range(6):
        exact = [sum(integers[row][i] * integers[i][y] for i in range(6)) for y in range(6)]
        differences = [abs(a - b) for a, b in zip(drawn_law(both, row), exact, strict=True)]
        assert max(differences) <= Fraction(3, ONE)  # the product in floats is rounded, too


def laws_typed():
    rng = np.random.default_rng(7)
    yield from ([0.1] * 10, [1 / 3] * 3, [1 / 49] * 49, [0.7, 0.2, 0.1], [1.0], [0, 1, 0])
    yield from ([1 - 1e-12, 0.0], [0.0, 1 + 1e-12], [1e-17, 1.0], [1 - 2**-53, 2**-53])
    yield from ([1e-300, 0.5, 0.5], [0.5, 0.5 - 1e-10, 0.0])
    for size in (2, 5, 40, 3000):
        for alpha in (0.02, 1.0):
            yield from rng.dirichlet(np.full(size, alpha), 4)
            yield from rng.dirichlet(np.full(size, alpha), 2).astype(np.float32).astype(float)


@pytest.mark.parametrize(
    "law", some_at_length([*map(list, laws_typed())], 20), ids=lambda law: f"{len(law)}"
)
def test_a_law_of_ones_own_is_rounded_by_next_to_nothing(law):
    total = sum(map(Fraction, law))
    if abs(total - 1) > 1e-9:
        law = [p / math.fsum(law) for p in law]
        total = sum(map(Fraction, law))
    (integers,) = numerators(np.array([law])).tolist()
    (as_sparse,) = numerators(sparse.csr_array([law])).toarray().tolist()
    assert integers == as_sparse
    assert sum(integers) == ONE
    off = max(abs(k - Fraction(p) / total * ONE) for k, p in zip(integers, law, strict=True))
    assert off <= (1 if math.fsum(law) == 1 else 2)
    assert all(k >= 0 and (p > 0 or k == 0) for k, p in zip(integers, law, strict=True))


def test_small_laws_meet_every_number_as_often_as_they_say(monkeypatch):
    """With 2⁶ in place of 2⁵² every number is tried."""
    monkeypatch.setattr(module, "DENOMINATOR", 64)
    for law in ([0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3], [0, 0.99, 0.01, 0], [0.02] * 50):
        for matrix in (np.array([law, law[::-1]]), sparse.csr_array([law, law[::-1]])):
            channel = Channel(matrix, inputs="ab", outputs=range(len(law)))
            for row, typed in enumerate((law, law[::-1])):
                drawn = channel._draw(np.full(64, row), np.arange(64)[None])
                counts = np.bincount(drawn, minlength=len(law))
                assert (np.abs(counts - 64 * np.array(typed)) < 1).all()
                assert not counts[np.array(typed) == 0].any()


@pytest.mark.parametrize("row_id", [False, True])
@pytest.mark.parametrize("name", ["budget", "local privacy", "strategies"])
def test_drawn_letters_have_the_law_of_the_channel(name, row_id):
    channel, each = SOLVED[name]().solve().channel, 20_000
    place = {label: i for i, label in enumerate(channel.outputs)}
    names = range(each * len(channel.inputs)) if row_id else None
    letters = [x for x in channel.inputs for _ in range(each)]
    drawn = np.array([place[y] for y in channel.apply(letters, seed=9, row_id=names).tolist()])
    for row, law in zip(drawn.reshape(-1, each), channel.matrix, strict=True):
        counts = np.bincount(row, minlength=len(law))
        assert not counts[law == 0].any()
        expected = law * each
        rare = expected < 5
        drawn_counts = [*counts[~rare], *([counts[rare].sum()] if expected[rare].sum() > 1 else [])]
        wanted = [*expected[~rare], *([expected[rare].sum()] if expected[rare].sum() > 1 else [])]
        if len(drawn_counts) > 1:
            scaled = np.array(wanted) * sum(drawn_counts) / sum(wanted)
            assert stats.chisquare(drawn_counts, scaled).pvalue > 1e-3


def test_one_seed_for_two_channels_tells_what_neither_tells():
    """Where their letters differ, one number shows which records they were."""
    channel = Channel([[0.75, 0.25], [0.25, 0.75]], inputs=[0, 1], outputs=[0, 1])
    x = np.random.default_rng(0).integers(0, 2, 20_000)
    first, same, other = channel.apply(x, seed=5), *(channel.apply(1 - x, seed=s) for s in (5, 6))
    assert np.array_equal(x[first != same], first[first != same])
    assert np.mean(x[first != other] == first[first != other]) == pytest.approx(0.9, abs=0.01)


# ---- nobody guesses, nobody is told -------------------------------------------------------


def test_a_seed_that_is_typed_is_found_by_trying_and_each_try_is_dear(monkeypatch):
    """A seed of eight bits is found from a release; without one there is nothing to try."""
    channel = SOLVED["local privacy"]().solve().channel
    letters = [0, 1, 2, 3, 4, 5] * 20
    stretched, tries = module._stretched.__wrapped__, []
    cheap = lambda seed: tries.append(seed) or hashlib.sha256(b"%d" % seed).digest()  # noqa: E731
    monkeypatch.setattr(module, "_stretched", cheap)  # 2⁸ of the dear ones take ten seconds
    released = channel.apply(letters, seed=173).tolist()
    guessed = [s for s in range(2**8) if channel.apply(letters, seed=s).tolist() == released]
    assert guessed == [173]
    assert len(tries) == 1 + 2**8  # each try is one key, and each key is stretched:
    assert stretched(173) == key_of(173)
    unguessed = channel.apply(letters).tolist()
    assert not any(channel.apply(letters, seed=s).tolist() == unguessed for s in range(2**8))


def test_half_of_a_character_is_no_name():
    channel = SOLVED["local privacy"]().solve().channel
    with pytest.raises(cpv.InputError, match="half of a character") as refused:
        channel.apply([0, 1, 2], seed=1, row_id=["a", "b\ud83d", "c"])
    assert (refused.value.argument, refused.value.where) == ("row_id", 1)
    channel.apply([0, 1, 2], seed=1, row_id=["a", "b\U0001f600", "ç"])


SEED = 271828182845904523536028747135266249775


def secrets_of(seed: int) -> list[bytes]:
    """Return how a key would look, and the seed, in whatever is shown or kept."""
    key = key_of(seed)
    words = [key, key.hex().encode(), repr(key).encode(), repr(key)[2:-1].encode()]
    return [*words, str(seed).encode(), hex(seed).encode(), seed.to_bytes(16, "little")]


def test_no_key_is_shown_or_kept(tmp_path):
    seed = SEED
    solution = SOLVED["budget"]().solve()
    solution.channel.apply([0, 1, 2], seed=seed)
    solution.channel.apply([0, 1, 2], seed=seed, row_id=[1, 2, 3])
    gaussian = cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.8), budget=0.5).solve()
    gaussian.release.apply(np.ones((3, 1)), seed=seed)
    kept = [solution, solution.channel, gaussian, gaussian.release]
    shown = [pickle.dumps(each) for each in kept]
    shown += [repr(each).encode() for each in (*kept, Draws(seed), *Draws(seed).children(1))]
    shown.append(solution.channel.save(tmp_path / "channel.json").read_bytes())
    with pytest.raises(cpv.InputError) as caught:
        solution.channel.apply([0, 1], seed=seed, row_id=["a", "a"])
    shown.append(repr(caught.value).encode() + str(vars(caught.value)).encode())
    with pytest.raises(cpv.InputError) as caught:
        solution.channel.apply([0, 1], seed=str(seed))
    shown.append(repr(caught.value).encode() + str(vars(caught.value)).encode())
    for secret in secrets_of(seed):
        assert not any(secret in each for each in shown)


def test_lazy_frames_and_relations_draw_as_the_table_in_memory(monkeypatch):
    from cvxprivacy.release import apply

    channel = Channel(
        np.full((3, 3), [0.5, 0.25, 0.25]), inputs="abc", outputs="abc",
        schema=TableSchema(key=("x",)),
    )  # fmt: skip
    columns = {"x": ("text", list("abc") * 7_000)}
    expected = channel.apply(made("pandas", columns), seed=6)["x"].tolist()
    assert channel.apply(columns["x"][1], seed=6).tolist() == expected
    for batch in (131_072, 8_192, 1_000):
        monkeypatch.setattr(apply, "BATCH", batch)
        lazy = channel.apply(made("lazy", columns), seed=6)
        assert lazy.collect()["x"].to_list() == expected
        assert lazy.filter(pl.col("x") == "a").collect()["x"].to_list() == ["a"] * expected.count(
            "a"
        )
        reader = channel.apply(made("duckdb", columns), seed=6)
        assert reader.read_all()["x"].to_pylist() == expected
