"""The way of a table through ``release``: counted, solved for, drawn, written, reported."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy.model.information import nat
from cvxprivacy.release.draws import Draws
from cvxprivacy.tables.labels import written
from cvxprivacy_sdc.commands.attack import copied_disclosure
from cvxprivacy_sdc.copied.order import OrderTest
from cvxprivacy_sdc.dossier import report_outputs, report_targets
from cvxprivacy_sdc.dossier.provenance import Asked, Kept
from cvxprivacy_sdc.dossier.report import (
    MERGED_BEYOND,
    relaxed,
    report,
    report_text,
    with_checks,
    with_copied,
)
from cvxprivacy_sdc.formats.house import House
from cvxprivacy_sdc.formats.shuffle import release_shuffled
from cvxprivacy_sdc.formats.table_files import in_memory, open_table
from cvxprivacy_sdc.releases.check import as_typed, asked
from cvxprivacy_sdc.releases.drawn_table import DrawnTable
from cvxprivacy_sdc.releases.released_law import law_of
from cvxprivacy_sdc.releases.table_design import solved_law
from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.columns import (
    column_of,
    copied_columns,
    leave_out,
    remarks_on_dropped,
)
from cvxprivacy_sdc.statements.exits import CODES, arguments, note_reading, notes
from cvxprivacy_sdc.statements.outputs import Output, progress, refuse_unwritable, steps, write_all
from cvxprivacy_sdc.statements.recodings import chosen, mapping_files, recoded, recoded_text
from cvxprivacy_sdc.statements.statement import (
    law_criteria,
    of_table,
    problem_data,
    problem_of,
    problem_text,
    role_columns,
    source_of,
    too_many,
)

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.release.channel import Channel
    from cvxprivacy.results.solution import Solution
    from cvxprivacy_sdc.releases.check import Check
    from cvxprivacy_sdc.releases.released_law import ReleasedLaw
    from cvxprivacy_sdc.risk.population import Halves, PopulationRisk

__all__ = ["Releasing", "halves_of", "released_output"]

_WITHOUT_HOLDOUT = (
    ("weights", "--weights, records are no independent draws of one law", "leave out either"),
    ("encoder", "--encoder wx, the randomisation sees W", "use --encoder x, or hold nothing out"),
    ("cells", "--cells, which looks at W of all records", "paste the options that --cells prints"),
    (
        "problem_out",
        "--problem-out, whose file cannot say which records are held out",
        "leave out either",
    ),
)
_BALANCED = (
    "drawn together: every count is its expectation rounded up or down{}; who knows all other "
    "records of a group of like records, and what they became, knows what the last one became"
)


class Releasing:
    """A release on its way; every stage needs the one before, and nothing is written until last.

    Attributes
    ----------
    targets : dict of str to str
        The files that are wanted, by their options.
    data : dict
        The problem as it was typed, with the keys of a problem file.
    document, text
        What is reported, as JSON holds it and in words.
    """

    drawn: DrawnTable | None = None

    def __init__(
        self,
        table: str,
        reading: Mapping[str, Any],
        seed: int,
        row_id: str | None,
        options: Mapping[str, Any],
    ) -> None:
        self.table, self.reading, self.options = table, reading, options
        self.seed, self.row_id = seed, row_id
        self.targets = {name: options[name] for name in ("out", "certificate", "channel")}
        self.targets["problem-out"] = options["problem_out"]
        self.reports = report_targets(options["report"])
        self.targets |= self._beside()
        self.targets |= self.reports
        inputs = [*mapping_files(options["recoding"]), *options["after"], *options["after_channel"]]
        shuffled = options["shuffle"]
        if shuffled and self.targets["out"] is None:
            raise InputError("--shuffle", "no table is drawn", "pass --out, the released table")
        refuse_unwritable(self.targets, table, *inputs, shuffled=shuffled)
        self.house = House.of(self.targets, table, always=shuffled)
        _refuse_with_holdout(options)
        if options["attack"] and not options["untouched"]:
            raise InputError("--attack", "with --no-untouched", "leave out either")
        if options["ensure"] == "table" and self.targets["out"] is None:
            raise InputError("--ensure", "no table is drawn", "pass --out, the released table")

    @property
    def ensure(self) -> str:
        """What is to satisfy the criteria: the table, unless the law was typed or nothing asked.

        Of records held out the law alone: mending would look at them, too.
        """
        typed: str | None = self.options["ensure"]
        asked_for = self.data["criteria"] and self.options["holdout"] is None
        return typed or ("table" if asked_for else "law")

    def _beside(self) -> dict[str, str]:
        """Return the paths of further files."""
        return {}

    def count(self) -> None:
        """Read and count the table, and state the problem."""
        options = self.options
        self.opened = note_reading(open_table(self.table, self.reading, out=self.targets["out"]))
        if self.row_id is not None:
            self.row_id = column_of(self.row_id, self.opened.header, "--row-id")
        self.data, choice = problem_data(options, self.opened.header), None
        counting = self.data["source"]
        roles = [n for role in role_columns(counting).values() for n in role]
        leave_out(
            self.opened, options["drop"] or None, options["keep_columns"] or None,
            key=counting["key"], used=roles, row_id=self.row_id,
        )  # fmt: skip
        self.opened.refuse_unwritable()
        if options["cells"] is not None:
            self.data["source"], choice = chosen(self.opened, self.data["source"], options["cells"])
        with progress(self.opened.size, f"reading {Path(self.table).name}") as read:
            self.frame, self.source = source_of(
                self.opened,
                all_columns=options["untouched"],
                also=self.row_id,
                progress=read,
                **self.data["source"],
            )
        schema = self.source.schema
        assert schema is not None
        self.schema, self.recoding = schema, recoded(self.data["source"], schema, choice)
        if options["shuffle"]:
            release_shuffled(self.opened, self.house, self.seed)
        self.order = OrderTest.of(
            self.frame, schema, dropped=self.opened.dropped, shuffled=options["shuffle"],
            unseen=() if options["untouched"] else copied_columns(self.opened, schema),
        )  # fmt: skip
        self.split = None if options["holdout"] is None else _split(options["holdout"], self.seed)
        self.halves = None if self.split is None else halves_of(self.source, self.split)
        design = self.source if self.halves is None else self.halves.design
        self.problem, self.stated = problem_of(self.data, design), ""
        self.of_table = of_table(self.data)
        drawn = self.ensure == "law" and self.targets["out"] is not None
        if self.of_table and (drawn or options["after"]):
            stated = f"{self.of_table[0]!r} is of a table, and no law keeps it"
            remedy = "pass --ensure table without --after, or ask the law for RecordEntropy"
            raise InputError("--criterion", stated, remedy)
        if (path := self.targets["problem-out"]) is not None:
            rules = law_criteria(self.data, design)
            self.stated = problem_text(path, self.data, self.table, self.reading, rules)

    def solve(self) -> None:
        """Find the optimal channel, and bound what it tells in the population."""
        options, started = self.options, time.monotonic()
        with too_many(self.source), steps() as on_step:
            self.solution = solved_law(
                self.problem,
                ensure=self.ensure,
                accuracy=options["accuracy"],
                time_limit=options["time_limit"],
                progress=on_step,
            )
        self.seconds = time.monotonic() - started
        self.population = _measured_of(self.halves, self.problem, self.solution, options, self.seed)

    def draw(self) -> None:
        """Draw the table, hold it against what was asked, and mend it if that is wanted."""
        if self.targets["out"] is not None:
            together = self.options["draw"] == "balanced" or self.ensure == "table"
            more = (self.schema.weights, self.row_id)
            names = dict.fromkeys([*self.schema.columns, *(n for n in more if n is not None)])
            frame = in_memory(self.frame, names) if together else self.frame
            limit = self.options["time_limit"]
            self.drawn = DrawnTable.of(
                self.problem, self.solution, frame, seed=self.seed, row_id=self.row_id,
                source=self.source, ensure=self.ensure, draw=self.options["draw"],
                of_table=self.of_table, time_limit=limit and max(limit - self.seconds, 0.0),
            )  # fmt: skip

    def write(self) -> None:
        """Write every file that is wanted, together or not at all."""
        options = self.options
        certificate = self.solution.certificate
        drawing, law = self._channels
        self.leaks, self.together = ([], None) if not options["untouched"] else copied_disclosure(
            self.frame, self.schema, self.opened.dropped, units=options["units"], channel=law,
            together=options["attack"],
        )  # fmt: skip
        table = (self.opened, drawing, self.targets["out"], self.schema.columns)
        files = [
            released_output(*table, self.seed, self.row_id, options["draw"]),
            Output("certificate", self.targets["certificate"], certificate.write, private=True),
            Output("channel", self.targets["channel"], self.channel.write, private=True),
            Output("problem-out", self.targets["problem-out"], lambda f: f.write(self.stated)),
            *self._outputs(),
        ]
        self.kept = Kept(files)
        self.house.entries |= {} if self.split is None else {"split": self.split}
        if self.drawn is not None and self.drawn.merging is not None:
            self.house.entries["merged"] = [
                {"from": written(old, lenient=True), "to": written(new, lenient=True),
                 "records": records} for old, new, records in self.drawn.merging.moves
            ]  # fmt: skip
        write_all([*self.kept.outputs, *report_outputs(self.reports, self._facts)], self.house)

    @property
    def channel(self) -> Channel:
        """The solution's, with the groups merged that were: of the same seed the same table."""
        channel = self.solution.channel if self.drawn is None else self.drawn.channel
        assert channel is not None
        return channel

    @property
    def _channels(self) -> tuple[Any, Channel]:
        """What draws the table, and the law of what it draws, p(x̂ | x)."""
        return self.channel, self.channel

    def _outputs(self) -> list[Output]:
        """Return further files."""
        return []

    def _facts(self) -> dict[str, Any]:
        """Return what a report says, once the files that it speaks of are written."""
        from cvxprivacy_sdc.dossier.facts import release_facts

        command = click.get_current_context().command
        typed = Asked(arguments(), command, self.table, self.opened, self.house)
        alone = not self.options["after"] and self.options["draw"] == "independent"
        with steps() as on_step:
            return release_facts(
                typed, self.data, self.problem, self.source, self.solution, self.document,
                self.checks, self.kept, self.seconds, on_step,
                self.order,
                criteria=list(as_typed(self.problem._criteria(), self.of_table).values()),
                channel=self.channel if alone else None,
            )  # fmt: skip

    @cached_property
    def law(self) -> ReleasedLaw:
        """The law of what is released of all records."""
        if self.drawn is not None:
            return self.drawn.law
        return law_of(self.problem, self.solution, self.source)

    @cached_property
    def checks(self) -> list[Check]:
        """How what is released stands with what was asked."""
        if self.drawn is not None:
            return self.drawn.checks
        return asked(self.problem, self.solution, self.law)  # of the law what relaxes the others

    @cached_property
    def document(self) -> dict[str, Any]:
        """What is reported, of what was written."""
        counts = self.kept.results.get("out", {})
        facts = report(
            self.table, self.source, self.solution, counts, self.targets, self.law,
            getattr(self.problem, "leakage", None), dropped=self.opened.dropped,
        )  # fmt: skip
        facts = with_checks(facts, self.checks, self.solution, self.source, self.drawn)
        stated = ("encoder", "distortion", "budget", "criteria")  # for who counts again
        typed = {name: self.data[name] for name in stated if name in self.data}
        facts["asked"] = {"coding": self.schema.to_dict(), **typed}
        if self.recoding:
            facts["recoding"] = self.recoding
        if "bias" in self.recoding:
            chance, unit = self.recoding["bias"]["after"], nat(facts["units"]) / nat("bits")
            facts["risk_before_bias"] = chance if chance is None else chance * unit
        of_law = self.problem.criteria
        facts["notes"] = [*facts["notes"], *(relaxed(rule, of_law) for rule in self.of_table)]
        if self.drawn is not None and self.options["draw"] == "balanced":
            words = _BALANCED.format(
                "" if self.drawn.merging is None else ", before groups are merged"
            )
            facts["draw"], facts["notes"] = "balanced", [*facts["notes"], words]
        facts = self._completed(with_copied(facts, self.source, self.leaks, self.together))
        facts["order"] = self.order.document()
        more = [
            *self.order.lines,
            *remarks_on_dropped(self.opened, self.schema, self.row_id),
            *notes(),
        ]
        facts["notes"] = list(dict.fromkeys([*facts["notes"], *more]))
        return _population_facts(facts, self.population)

    def _completed(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return a report with what there is besides."""
        return facts

    @property
    def text(self) -> str:
        """What is reported, in words."""
        lines = recoded_text(self.recoding)
        lines.append(report_text(self.document, self.source, self.solution))
        if self.population is not None:
            lines.append(str(self.population))
        return "\n".join(lines)

    @property
    def code(self) -> int:
        """The exit code: a table that breaks a criterion is told by it, unless that was asked."""
        accepted = self.options["ensure"] is not None  # what the table breaks, not the law
        refused = (
            c for c in self.checks
            if c.refuses and not (accepted and c.breaks and c.law_holds is not False)
        )  # fmt: skip
        broken = self.drawn is not None and any(refused)
        return CODES["broken"] if broken else CODES[self.solution.status]


def released_output(
    opened: Any, channel: Any, out: str | None, used: Sequence[str], seed: int,
    row_id: str | None, draw: str,
) -> Output:  # fmt: skip
    """Return the released table, which is drawn as it is written."""

    def write(file: IO[bytes]) -> dict[str, Any]:
        with progress(opened.size, f"writing {Path(out or '').name}") as written:
            return opened.release(channel, file, used, seed, row_id, draw, written)

    return Output("out", out, write, binary=True)


# ---- records held out, which bound the population's risk ---------------------------------


def _refuse_with_holdout(options: Mapping[str, Any]) -> None:
    """Refuse what does not go together with ``--holdout``, or does not go without it."""
    share, level = options["holdout"], options["confidence"]
    if level is not None and share is None:
        raise InputError("--confidence", "without --holdout", "pass both, or neither", value=level)
    if share is None:
        return
    if not 0 < share < 1:
        remedy = "pass a share of the records, such as 0.5"
        raise InputError("--holdout", f"{share:g}", remedy, value=share)
    if level is not None and not 0 < level < 1:
        raise InputError(
            "--confidence", f"{level:g}", "pass a probability such as 0.95", value=level
        )
    for name, problem, remedy in _WITHOUT_HOLDOUT:
        if options[name] != ("x" if name == "encoder" else None):
            raise InputError("--holdout", f"with {problem}", remedy)


def _split(share: float, seed: int) -> dict[str, Any]:
    """Return what tells which records are held out: a key that tells nothing of the seed."""
    return {"share": share, "key": Draws(seed).derived("holdout").hex()}


def halves_of(source: DiscreteSource, split: Mapping[str, Any]) -> Halves:
    """Return the records in two parts, the same for the same key.

    Which part a record is in is independent of its draw, though both are of the one seed.
    """
    from cvxprivacy_sdc.risk.population import halved

    try:
        share, seed = split["share"], int(split["key"], 16)
    except (KeyError, TypeError, ValueError) as error:
        remedy = "keep the house file as it was written"
        raise InputError("split", f"no share and key ({error!r})", remedy) from None
    try:
        return halved(source, share=share, seed=seed)
    except InputError as error:
        if error.argument != "share":
            raise
        more: dict[str, Any] = {"where": error.where, "value": error.value}
        raise InputError("--holdout", error.problem, error.remedy, **more) from None


def _measured_of(
    halves: Halves | None,
    problem: ChannelProblem,
    solution: Solution,
    options: Mapping[str, Any],
    seed: int,
) -> PopulationRisk | None:
    """Return what the records held out say, if any are."""
    if halves is None:
        return None
    from cvxprivacy_sdc.risk.population import measured

    level = options["confidence"]
    level = shared.LEVEL if level is None else level
    chance = Draws(seed).generator("holdout measured")  # its figures are published
    return measured(halves, problem, solution, level=level, seed=chance)


def _population_facts(document: dict[str, Any], risk: PopulationRisk | None) -> dict[str, Any]:
    """Return a report with the population's risk."""
    if risk is None:
        return document
    note = (
        f"the optimum and the proof are of the {risk.records[0]:,} records that the channel was "
        f"designed on; all {sum(risk.records):,} go through it, and the risk after is of all"
    )
    merged = [MERGED_BEYOND] if "merged" in document else []
    notes = [*document["notes"], note, *merged]
    return {**document, "population": risk.document(), "notes": notes}
