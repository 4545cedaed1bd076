"""``release --after``: a table of whose records some were released before."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.exact import FloatArray, is_sparse
from cvxprivacy.files import file_sum
from cvxprivacy.formulations.candidate import candidate_rows
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion
from cvxprivacy.formulations.sequel import after_releases
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.one_symbol import i1
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.release.channel import Channel, MergedChannel
from cvxprivacy.tables.labels import printable
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.text import aligned, cells, plain
from cvxprivacy_sdc.dossier.tables import released_table
from cvxprivacy_sdc.formats.house import ENDING, manifest
from cvxprivacy_sdc.releases.released_law import ReleasedLaw
from cvxprivacy_sdc.releases.sequel import Matching, Sequel, earlier_letters, in_one, names_of
from cvxprivacy_sdc.statements.columns import refuse_unknown
from cvxprivacy_sdc.statements.outputs import Output, steps
from cvxprivacy_sdc.statements.statement import law_criteria, problem_text
from cvxprivacy_verifier.wording import many

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.results.solution import Solution

__all__ = ["Earlier", "Repeated", "averaged", "of_new_records"]

NEW = "new records"
MOST = 20  # values, and records of each, that an error lists
_ALONE = ("certificate", "channel", "problem-out")  # of which new records have their own
_WITHOUT = {
    "draw": "with --draw balanced: what all tell together is proved of independent draws",
    "ensure": "with --ensure table: what is merged after the draw is of no channel that was proved",
}

_MENDED = (
    "its groups were merged after the draw, by looking at the table, which no proof of both covers",
    "release again after a table that was not mended by --ensure table",
)


@dataclass(frozen=True)
class Earlier:
    """Earlier releases of the same records: the tables, and the channels that drew them."""

    tables: Sequence[str]  # their paths
    paths: Sequence[str]  # of the channels
    channels: list[Channel]
    bound: bool  # whether private manifests say that these channels drew these tables

    @classmethod
    def of(cls, options: Mapping[str, Any], row_id: str | None) -> Earlier:
        """Read the channels, and refuse what does not go together with earlier releases."""
        _refuse(options, row_id)
        tables, paths = options["after"], options["after_channel"]
        channels = [_channel(path) for path in paths]
        bound = [_bound(table, path) for table, path in zip(tables, paths, strict=True)]
        return cls(tables, paths, channels, all(bound))

    @contextmanager
    def named(self, schema: TableSchema, frame: Any, row_id: str) -> Iterator[None]:
        """Say of errors which option, and which of its files, they are about."""
        try:
            yield
        except InputError as error:
            name, _bracket, place = error.argument.partition("[")
            if name not in ("after", "released"):
                raise
            of_table = name == "released"
            i = int(place.rstrip("]") or 0) if of_table else int(error.where or 0)
            path = (self.tables if of_table else self.paths)[i]
            problem, remedy = error.problem, error.remedy
            if of_table and error.where is not None:
                path += f", record {int(error.where) + 1:,}"
            if not of_table and isinstance(error, UnknownValueError):
                problem, remedy = self._strangers(i, schema, frame, row_id)
            argument = f"--after {path}" if of_table else f"--after-channel {path}"
            raise InputError(argument, problem, remedy, value=error.value) from None

    def _strangers(
        self, place: int, schema: TableSchema, frame: Any, row_id: str
    ) -> tuple[str, str]:
        """Return which records have a value that an earlier table never had, and what to do."""
        channel, path = self.channels[place], self.tables[place]
        table = in_one(schema.counted_records(frame))
        parts = [schema.letters(table, group) for group in schema.input_columns(channel.encoder)]
        letters = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
        names: dict[Any, list[str]] = {}
        for letter, name in zip(letters, names_of(table, row_id, "row_id"), strict=True):
            if letter not in channel._rows:
                names.setdefault(letter, []).append(name)
        count = sum(map(len, names.values()))
        listed = [
            f"{letter!r} of {', '.join(of_it[:MOST])}" + ", …" * (len(of_it) > MOST)
            for letter, of_it in names.items()
        ]
        problem = f"the values of {count:,} of {many(len(letters), 'record')} are no input of it: "
        problem += "; ".join(listed[:MOST]) + "; …" * (len(listed) > MOST)
        remedy = "use the key, --bins, --group, --level and --top of that release"
        if count == len(letters):
            return problem, remedy
        earlier = {*names_of(_released(path, channel, row_id), row_id, f"--after {path}")}
        out = sum(name in earlier for of_it in names.values() for name in of_it)
        if out < count:
            these = f"those that are not in {path}" if out else "these records"
            remedy += f"; if they are, put {these} into a table of their own, and release it "
            remedy += "with the same --row-id, without --after: nothing of them is out"
        if out:
            remedy += f"; leave out those that are in {path}, {out:,}: their values have changed "
            remedy += "since, and nothing is proved of both releases together"
        return problem, remedy

    def read(self, schema: TableSchema, frame: Any, row_id: str) -> list[Any]:
        """Return the earlier tables; refuse other groups, and tables that share no record."""
        for path, channel in zip(self.paths, self.channels, strict=True):
            _refuse_other_groups(path, channel, schema)
        pairs = zip(self.tables, self.channels, strict=True)
        tables = [_released(path, channel, row_id) for path, channel in pairs]
        with self.named(schema, frame, row_id):
            letters = earlier_letters(tables, self.channels, schema.key, row_id)
        names = names_of(schema.counted_records(frame), row_id, "row_id")
        if not any(all(name in table for table in letters) for name in names):
            problem = f"no record is in {cells(self.tables)}, too"
            remedy = f"name the column that identifies a record in all; {row_id!r} does not"
            raise InputError("--row-id", problem, remedy, value=row_id)
        return tables


@dataclass(frozen=True)
class Repeated:
    """A release after earlier ones: the channel of all together, and that of new records."""

    earlier: Earlier
    data: dict[str, Any]  # the problem of new records, with the keys of a problem file
    source: DiscreteSource
    solution: Solution  # of all releases together
    alone: Solution  # of new records
    sequel: Sequel
    matching: Matching

    @classmethod
    def of(
        cls, earlier: Earlier, tables: Sequence[Any], problem: Any, data: dict[str, Any],
        solution: Solution, frame: Any, row_id: str, **how: Any,
    ) -> Repeated:  # fmt: skip
        """Solve the ``problem`` of new records, and match the records of all tables."""
        with steps() as on_step:
            alone = problem.solve(progress=on_step, **how)
        assert solution.channel is not None
        assert alone.channel is not None
        channels = solution.channel, alone.channel
        sequel = Sequel(*channels, after=earlier.channels, released=tables, row_id=row_id)
        matching = sequel.matching(sequel.schema.counted_records(frame))
        return cls(earlier, data, problem.source, solution, alone, sequel, matching)

    def outputs(
        self, targets: Mapping[str, str | None], table: str, reading: Mapping[str, Any]
    ) -> list[Output]:
        """Return the files of new records."""
        assert self.alone.channel is not None

        def write_problem(file: Any) -> None:
            path = str(targets[f"problem-out, {NEW}"])
            rules = law_criteria(self.data, self.source)
            file.write(problem_text(path, self.data, table, reading, rules))

        writers = (self.alone.certificate.write, self.alone.channel.write, write_problem)
        return [
            Output(f"{name}, {NEW}", path, writer, private=name != "problem-out")
            for name, writer in zip(_ALONE, writers, strict=True)
            if (path := targets.get(f"{name}, {NEW}"))
        ]

    def law(self, problem: ChannelProblem) -> ReleasedLaw:
        """Return the law that the first proof is of."""
        release, channel = problem.alphabet, self.solution.channel
        assert channel is not None
        stated = (channel, self.source, release.d, release.units, True, None)
        return _LawOfAll(*stated, self.solution, release)

    def document(self, units: str) -> dict[str, Any]:
        """Return what all releases reveal, and of which records that is proved."""
        names = [Path(path).name for path in self.earlier.tables]
        ends, matching = ("status", "lower", "upper"), asdict(self.matching)
        del matching["fits"]  # the statements say it
        return {
            "after": names,
            "units": units,
            **matching,
            "told": _leaked(self.sequel, self.source, units),
            "new_records": {name: getattr(self.alone, name) for name in ends},
            "statements": _statements(self.matching, names, self.earlier.bound),
        }

    def text(self, table: str, facts: Mapping[str, Any], text: str) -> str:
        """Return what is reported, in words: ``text`` is what is of any release."""
        rows = aligned([(f"  {row['name']}", row["words"]) for row in facts["told"]])
        new = [f"of a record that is new: {self.alone}"] if self.matching.apart else []
        return "\n".join([
            f"{table} after {cells(facts['after'])}: {self.matching}",
            "what they tell, of a record that is in all of them:", *rows, text, *new,
        ])  # fmt: skip


@dataclass(frozen=True, eq=False)
class _LawOfAll(ReleasedLaw):
    """The law of W and the letters of all releases: what is said of it is what was proved."""

    solution: Solution
    release: Alphabet

    @property
    def name(self) -> str:
        """What it is called."""
        return "all releases together"

    @cached_property
    def risk(self) -> float:
        """I(W; all letters), or what is minimised in its place."""
        terms = self.solution.terms
        return float(terms["information" if "information" in terms else "risk"])

    @cached_property
    def mean_distortion(self) -> float:
        """E d of this release."""
        return float(self.solution.terms["distortion"])

    @cached_property
    def _masses(self) -> FloatArray:
        """p(w, x, (z, x̂)) of the earlier letters z and this one's x̂."""
        source, rows = self.release.source, self.channel._rows
        table = np.zeros((*source.law.shape, len(self.channel.outputs)))
        law = source.law / source.law.sum()
        for place in zip(*np.nonzero(law), strict=True):
            labels = zip("wxz", (source.w, source.x, source.z or []), place, strict=True)
            letter = tuple(axis[i] for name, axis, i in labels if name in self.channel.encoder)
            table[place] = law[place] * self.channel.matrix[rows[letter]]
        return table.reshape(*law.shape[:2], -1)

    @cached_property
    def joint(self) -> FloatArray:
        """p(w, (z, x̂))."""
        return self._masses.sum(axis=1)

    def _of_letters(self) -> FloatArray:
        """Return D(p(s | z, x̂) ‖ p(s)) of what all releases see of a record, in nats."""
        earlier, masses = self.release.earlier, self._masses
        assert earlier is not None
        letters = masses.reshape(-1, masses.shape[-1]) if earlier.sees == "wx" else masses.sum(0)
        return np.nan_to_num(i1(letters[letters.sum(axis=1) > 0], units="nats"))


# ---- what is read ------------------------------------------------------------------------


def _refuse(options: Mapping[str, Any], row_id: str | None) -> None:
    """Refuse tables and channels that are no pairs, and what does not go together with them."""
    tables, channels = options["after"], options["after_channel"]
    if len(tables) != len(channels):
        problem = f"{many(len(tables), 'table')} of {many(len(channels), 'channel')}"
        remedy = "pass --after RELEASED --after-channel CHANNEL for each earlier release"
        raise InputError("--after", problem, remedy)
    if len({*map(os.path.realpath, tables)}) < len(tables):
        remedy = "pass each earlier release once: they are taken to be drawn independently"
        raise InputError("--after", "one table twice", remedy)
    if row_id is None:
        remedy = "name the column that identifies a record in all tables"
        raise InputError("--row-id", "none, with --after", remedy)
    for name, problem in _WITHOUT.items():
        if options[name] not in (None, "law", "independent"):
            raise InputError("--after", problem, f"leave out --{name}")


def of_new_records(targets: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the files of their own that new records have, by their options."""
    files = {name: Path(path) for name in _ALONE if (path := targets[name])}
    return {
        f"{name}, {NEW}": str(file.with_name(f"{file.stem}.new{file.suffix}"))
        for name, file in files.items()
    }


def _released(path: str, channel: Channel, row_id: str) -> Any:
    """Return the columns of an earlier table that are needed."""
    assert channel.schema is not None
    opened = released_table(Path(path), channel.schema)
    names = [row_id, *channel.schema.key]
    refuse_unknown(f"--after {path}", names, opened.header)
    return in_one(opened.frame(names))  # it is looked at twice


def _channel(path: str) -> Channel:
    """Return the channel of an earlier release, of a table."""
    option = f"--after-channel {path}"
    try:
        channel = Channel.load(path)
    except InputError as error:
        remedy = "pass a file that `release --channel` wrote"
        raise InputError("--after-channel", error.problem, remedy) from None
    if channel.schema is None:
        problem, remedy = "it does not know a table's columns", "pass one of `release --channel`"
        raise InputError(option, problem, remedy)
    if channel.schema.earlier:
        problem = "it drew with the letters of a release before it"
        remedy = "pass channels that did not: a sequel of a sequel is not solved for"
        raise InputError(option, problem, remedy)
    if isinstance(channel, MergedChannel):
        raise InputError(option, *_MENDED)
    return channel


def _bound(table: str, channel: str) -> bool:
    """Tell whether a house file says that the channel drew the table; refuse one that denies it."""
    house = manifest(Path(table + ENDING)) or {}
    try:
        merged, kept = "merged" in house, house["files"].get("channel")
    except (KeyError, AttributeError):
        return False
    if merged:
        raise InputError(f"--after {table}", *_MENDED)
    if kept is None:
        return False
    if kept["sha256"] != file_sum(channel):
        problem = f"by {Path(table + ENDING).name} another channel released {table}"
        remedy = f"pass {printable(kept['name'])}, as it was written"
        raise InputError(f"--after-channel {channel}", problem, remedy)
    return True


def _refuse_other_groups(path: str, channel: Channel, schema: TableSchema) -> None:
    """Refuse a channel of other columns, or of groups that only read the same."""
    assert channel.schema is not None
    if channel.schema.key != schema.key:
        problem = f"it releases {cells(channel.schema.key)}, and not {cells(schema.key)}"
        remedy = "release the same key columns, in the same order"
        raise InputError(f"--after-channel {path}", problem, remedy)
    for name in schema.key:
        if channel.schema.groups.get(name) != schema.groups.get(name):
            problem = f"other groups of {name!r} than here"
            remedy = "use the --group, --level and --top of that release: frequencies may have "
            remedy += "changed, a file of groups does not"
            raise InputError(f"--after-channel {path}", problem, remedy, value=name)


# ---- what is told ------------------------------------------------------------------------


def averaged(sequel: Sequel, matching: Matching) -> Channel:
    """Return p(x̂ | x) of all records: the earlier letters summed out, and new ones with them."""
    together, alone = sequel.together, sequel.alone
    rows, masses = np.zeros((2, *alone.matrix.shape)), np.zeros(len(alone.inputs))
    rows[1] = rows[0] = alone.matrix.toarray() if is_sparse(alone.matrix) else alone.matrix
    assert together.p_input is not None
    summed = np.zeros_like(rows[0])
    table = together.matrix.toarray() if is_sparse(together.matrix) else together.matrix
    places = [alone._rows[letter[0] if len(letter) == 2 else letter[:-1]]
              for letter in together.inputs]  # fmt: skip
    np.add.at(summed, places, together.p_input[:, None] * table)
    np.add.at(masses, places, together.p_input)
    there = masses > 0
    rows[0][there] = summed[there] / masses[there, None]
    share = matching.matched / (matching.matched + matching.apart)
    return alone._with(matrix=share * rows[0] + (1 - share) * rows[1])


def _leaked(sequel: Sequel, source: DiscreteSource, units: str) -> list[dict[str, Any]]:
    """Return what each release tells, all together, and all if this one were drawn by itself.

    Information about W by the law of the table, each between two proved ends.
    """
    encoder, together = sequel.alone.encoder, sequel.together
    joint = after_releases(source, sequel.after)
    assert joint.z is not None
    pairs = DiscreteSource(
        joint.law.reshape(len(joint.w), -1),
        w=joint.w, x=[(x, z) for x in joint.x for z in joint.z],
    )  # fmt: skip
    paired = [(*letter[:-2], letter[-2:]) for letter in together.inputs]
    inputs = [letter if len(letter) > 1 else letter[0] for letter in paired]
    of_pairs = Channel(together.matrix, inputs=inputs, outputs=together.outputs)
    enclosures = {
        f"earlier release {i + 1}" if len(sequel.after) > 1 else "the earlier release":
            _information(source, channel, units=units, encoder=channel.encoder)
        for i, channel in enumerate(sequel.after)
    }  # fmt: skip
    enclosures["this one"] = _information(pairs, of_pairs, units=units, encoder=encoder)
    after: dict[str, Any] = {"after": sequel.after, "units": units, "encoder": encoder}
    enclosures["all together"] = _information(source, together, **after)
    enclosures["all together, were this one drawn by itself"] = _information(
        source, sequel.alone, remember=False, **after
    )
    return [
        {
            "name": name,
            "lower": lower,
            "upper": upper,
            "words": f"{plain((lower + upper) / 2, 6)} {units}",
        }
        for name, (lower, upper) in enclosures.items()
    ]


def _information(source: DiscreteSource, channel: Channel, **options: Any) -> tuple[float, float]:
    """Return the ends of I(W; what is released) of a channel, in balls."""
    free = Distortion(np.zeros((len(source.x), len(channel.outputs))), outputs=channel.outputs)
    problem = PrivacyDistortion(source, free, budget=1.0, **options)
    places = {letter: i for i, letter in enumerate(channel.inputs)}
    inputs = [letter for letter in problem.alphabet.inputs if letter in places]
    matrix = channel.matrix[[places[letter] for letter in inputs]]
    rows = Channel(matrix, inputs=inputs, outputs=channel.outputs)
    prover = Prover(problem.program)
    prover.offer_channel(candidate_rows(rows, problem.alphabet))
    return prover.terms["risk"]


def _statements(matching: Matching, names: Sequence[str], bound: bool) -> list[str]:
    """Return of which records the proofs are, and of which they are not."""
    tables = cells(names)
    new = ", and, as a program of its own, of a record that is new" * bool(matching.apart)
    lines = [
        "what is proved is of this table: of a record of it whose released values in "
        f"{tables} were drawn from the key value that it has now{new}; it is not of the records in "
        "all tables alone, whose shares may differ",
        f"the key values behind {tables} are not known: of a record whose value changed since, to "
        "one that may have been released so, nothing is proved, and none is counted",
        "who has all tables sees which records are new or gone: what that tells is not counted",
    ]
    if matching.changed:
        lines.append(
            f"{many(matching.changed, 'record')} changed: no record of today's value is "
            f"released so in {tables}; drawn as new records are, and what all tell is not proved "
            "of them"
        )
    if matching.partly:
        lines.append(
            f"{many(matching.partly, 'record')} in some of {tables} only: drawn as new records "
            "are, and what all tell is not proved of them"
        )
    if len(names) > 1:
        lines.append(f"{tables} have to be drawn independently: by a seed of its own each")
    if not matching.fits:
        lines.append(
            f"what is released in {tables} is not such as the channels draw of today's values: "
            "another channel, one seed for several tables, or many values that changed; find out "
            "which, as nothing is proved of such records"
        )
    if not bound:
        lines.append(
            f"that the channels are those of {tables} was not checked: no house file beside them "
            "says so"
        )
    return lines
