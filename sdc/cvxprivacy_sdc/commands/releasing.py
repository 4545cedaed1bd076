"""The way of a table through ``release``: counted, solved for, drawn, written, reported.

Each stage is a function of what those before it found; nothing is written before the last.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy.model.information import nat
from cvxprivacy.tables.labels import written
from cvxprivacy_sdc.commands.sequel import Earlier, Repeated, averaged, of_new_records
from cvxprivacy_sdc.copied.joint_disclosure import copied_disclosure
from cvxprivacy_sdc.copied.order import OrderTest
from cvxprivacy_sdc.dossier import report_outputs, report_targets
from cvxprivacy_sdc.dossier.provenance import Asked, Kept
from cvxprivacy_sdc.dossier.report import relaxed, report, report_text, with_checks, with_copied
from cvxprivacy_sdc.formats.house import House
from cvxprivacy_sdc.formats.shuffle import release_shuffled
from cvxprivacy_sdc.formats.table_files import in_memory, open_table
from cvxprivacy_sdc.releases.check import as_typed, asked
from cvxprivacy_sdc.releases.drawn_table import DrawnTable
from cvxprivacy_sdc.releases.released_law import law_of
from cvxprivacy_sdc.releases.table_design import solved_law
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
    from cvxprivacy.criteria import Criterion
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.release.channel import Channel
    from cvxprivacy.results.solution import Solution
    from cvxprivacy.tables.schema import TableSchema
    from cvxprivacy_sdc.copied.joint_disclosure import JointDisclosure
    from cvxprivacy_sdc.copied.untouched import Leak
    from cvxprivacy_sdc.releases.check import Check
    from cvxprivacy_sdc.releases.released_law import ReleasedLaw

__all__ = ["release_table", "released_output"]

_BALANCED = (
    "drawn together: every count is its expectation rounded up or down{}; who knows all other "
    "records of a group of like records, and what they became, knows what the last one became"
)


@dataclass(frozen=True)
class Counted:
    """A table that was read and counted, and the problem that its options state."""

    opened: Any
    row_id: str | None
    data: dict[str, Any]  # the problem as it was typed, with the keys of a problem file
    frame: Any
    source: DiscreteSource
    schema: TableSchema
    recoding: dict[str, Any]
    order: OrderTest
    problem: ChannelProblem
    stated: str  # the problem file
    of_table: list[Criterion]  # those that no law satisfies
    ensure: str  # what is to satisfy the criteria: "law" or "table"


@dataclass(frozen=True)
class Released:
    """What is released: by which channel, of which law, and what was drawn."""

    solution: Solution
    seconds: float
    repeated: Repeated | None
    drawn: DrawnTable | None
    drawing: Any  # the channel, or the sequel, that draws the table
    channel: Channel  # the one that is kept, its groups merged if any were
    law: ReleasedLaw
    checks: list[Check]
    leaks: list[Leak]
    together: JointDisclosure | None


def release_table(table: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], str, int]:
    """Release a table and write its files; return the report, its text and the exit code."""
    earlier = None
    if options["after"] or options["after_channel"]:
        earlier = Earlier.of(options, options["row_id"])
    reports = report_targets(options["report"])
    targets = {name: options[name] for name in ("out", "certificate", "channel")}
    targets["problem-out"] = options["problem_out"]
    of_new = {} if earlier is None else of_new_records(targets)
    targets |= of_new | reports
    _refuse(table, options, targets)
    house = House.of(targets, table, always=options["shuffle"])
    counted = count(table, options, house, earlier)
    released = _released(options, counted, earlier)
    drawn, repeated, solution = released.drawn, released.repeated, released.solution
    if repeated is not None and not repeated.matching.apart:  # nobody is new
        targets = {name: path for name, path in targets.items() if name not in of_new}
    kept = Kept([
        released_output(
            counted.opened, released.drawing, targets["out"], counted.schema.columns,
            options["seed"], counted.row_id, options["draw"], frame=counted.frame,
            places=None if drawn is None else drawn.places,
        ),
        Output("certificate", targets["certificate"], solution.certificate.write, private=True),
        Output("channel", targets["channel"], released.channel.write, private=True),
        Output("problem-out", targets["problem-out"], lambda file: file.write(counted.stated)),
        *([] if repeated is None else repeated.outputs(targets, table, options["reading"])),
    ])  # fmt: skip
    if drawn is not None and drawn.merging is not None:
        house.entries["merged"] = [
            {"from": written(old, lenient=True), "to": written(new, lenient=True),
             "records": records} for old, new, records in drawn.merging.moves
        ]  # fmt: skip

    @cache
    def document() -> dict[str, Any]:
        results = kept.results.get("out", {})
        facts = report(
            table, counted.source, solution, results, targets, released.law,
            getattr(counted.problem, "leakage", None), dropped=counted.opened.dropped,
        )  # fmt: skip
        return _completed(facts, options, counted, released)

    def facts() -> dict[str, Any]:
        from cvxprivacy_sdc.dossier.facts import release_facts

        command, problem = click.get_current_context().command, counted.problem
        alone = not options["after"] and options["draw"] == "independent"
        with steps() as on_step:
            return release_facts(
                Asked(arguments(), command, table, counted.opened, house), counted.data, problem,
                counted.source, solution, document(), released.checks, kept, released.seconds,
                on_step, counted.order, counted.frame,
                criteria=list(as_typed(problem._criteria(), counted.of_table).values()),
                channel=released.channel if alone else None,
            )  # fmt: skip

    write_all([*kept.outputs, *report_outputs(reports, facts)], house)
    reported = report_text(document(), counted.source, solution)
    text = "\n".join([*recoded_text(counted.recoding), reported])
    if repeated is not None:
        text = repeated.text(table, document()["sequel"], text)
    return document(), text, _code(options, released)


# ---- the stages --------------------------------------------------------------------------


def _refuse(table: str, options: Mapping[str, Any], targets: Mapping[str, str | None]) -> None:
    """Refuse, before any work, options and files that do not go together."""
    inputs = [*mapping_files(options["recoding"]), *options["after"], *options["after_channel"]]
    for name, typed in (("shuffle", options["shuffle"]), ("ensure", options["ensure"] == "table")):
        if typed and targets["out"] is None:
            raise InputError(f"--{name}", "no table is drawn", "pass --out, the released table")
    refuse_unwritable(targets, table, *inputs, shuffled=options["shuffle"])
    if options["attack"] and not options["untouched"]:
        raise InputError("--attack", "with --no-untouched", "leave out either")


def count(table: str, options: Mapping[str, Any], house: House, earlier: Earlier | None) -> Counted:
    """Read and count the table, and state the problem."""
    reading, row_id, seed = (options[name] for name in ("reading", "row_id", "seed"))
    opened = note_reading(open_table(table, reading, out=options["out"]))
    if row_id is not None:
        row_id = column_of(row_id, opened.header, "--row-id")
    data, choice = problem_data(options, opened.header), None
    counting = data["source"]
    roles = [name for names in role_columns(counting).values() for name in names]
    leave_out(
        opened, options["drop"] or None, options["keep_columns"] or None,
        key=counting["key"], used=roles, row_id=row_id,
    )  # fmt: skip
    opened.refuse_unwritable()
    if options["cells"] is not None:
        data["source"], choice = chosen(opened, counting, options["cells"])
    house.follow(opened)
    opened.replaced = counting["key"]
    with progress(opened.size, f"reading {Path(table).name}") as read:
        frame, source = source_of(
            opened, all_columns=options["untouched"], also=row_id, progress=read, **data["source"]
        )
    schema = source.schema
    assert schema is not None
    recoding = recoded(data["source"], schema, choice)
    if options["shuffle"]:
        release_shuffled(opened, house, seed)
    order = OrderTest.of(
        frame, schema, dropped=opened.dropped, shuffled=options["shuffle"],
        unseen=() if options["untouched"] else copied_columns(opened, schema),
    )  # fmt: skip
    with nullcontext() if earlier is None else earlier.named(schema, frame, str(row_id)):
        problem = problem_of(data, source)
    rules = of_table(data)
    ensure = options["ensure"] or ("table" if data["criteria"] else "law")
    drawn = ensure == "law" and options["out"] is not None
    if rules and (drawn or options["after"]):
        remedy = "pass --ensure table without --after, or ask the law for RecordEntropy"
        wrong = f"{rules[0]!r} is of a table, and no law keeps it"
        raise InputError("--criterion", wrong, remedy)
    stated = ""
    if (path := options["problem_out"]) is not None:
        stated = problem_text(path, data, table, reading, law_criteria(data, source))
    return Counted(
        opened, row_id, data, frame, source, schema, recoding, order, problem, stated,
        rules, ensure,
    )  # fmt: skip


def _released(options: Mapping[str, Any], counted: Counted, earlier: Earlier | None) -> Released:
    """Find the optimal channel, draw the table, hold it against what was asked, and mend it."""
    source, schema, problem = counted.source, counted.schema, counted.problem
    frame, row_id, seed = counted.frame, str(counted.row_id), options["seed"]
    if earlier is not None:
        apart = {name: value for name, value in counted.data.items() if name != "after"}
        tables = earlier.read(schema, frame, row_id)
        of_new = problem_of(apart, source)
    started = time.monotonic()
    limit = options["time_limit"]
    with too_many(source), steps() as on_step:
        solution = solved_law(problem, ensure=counted.ensure, time_limit=limit, progress=on_step)
    seconds = time.monotonic() - started
    repeated, drawn = None, None
    if earlier is not None:
        stated = earlier, tables, of_new, apart
        repeated = Repeated.of(*stated, solution, frame, row_id, time_limit=limit)
    elif options["out"] is not None:
        if options["draw"] == "balanced" or counted.ensure == "table":
            more = [name for name in (schema.weights, counted.row_id) if name is not None]
            frame = in_memory(frame, dict.fromkeys([*schema.columns, *more]))
        drawn = DrawnTable.of(
            problem, solution, frame, seed=seed, row_id=counted.row_id, ensure=counted.ensure,
            draw=options["draw"], of_table=counted.of_table,
            time_limit=limit and max(limit - seconds, 0.0),
        )  # fmt: skip
    channel = solution.channel if drawn is None else drawn.channel
    assert channel is not None
    drawing: Any = channel
    of_all = channel  # the law of what is drawn, p(x̂ | x)
    if drawn is not None:
        law, checks = drawn.law, drawn.checks
    elif repeated is not None:
        law, drawing = repeated.law(problem), repeated.sequel
        of_all = averaged(repeated.sequel, repeated.matching)
    else:
        law = law_of(problem, solution)
    if drawn is None:  # of the law what relaxes the others
        checks = asked(problem, solution, law)
    leaks: list[Leak] = []
    together = None
    if options["untouched"]:
        leaks, together = copied_disclosure(
            counted.frame, schema, counted.opened.dropped, progress, units=options["units"],
            channel=of_all, together=options["attack"],
        )  # fmt: skip
    return Released(
        solution, seconds, repeated, drawn, drawing, channel, law, checks, leaks, together,
    )  # fmt: skip


def released_output(
    opened: Any, channel: Any, out: str | None, used: Sequence[str], seed: int,
    row_id: str | None, draw: str, **drawn: Any,
) -> Output:  # fmt: skip
    """Return the released table, which is drawn as it is written, unless it is ``drawn``."""

    def write(file: IO[bytes]) -> dict[str, Any]:
        with progress(opened.size, f"writing {Path(out or '').name}") as written:
            return opened.release(channel, file, used, seed, row_id, draw, written, **drawn)

    return Output("out", out, write, binary=True)


# ---- what is reported --------------------------------------------------------------------


def _completed(
    facts: dict[str, Any], options: Mapping[str, Any], counted: Counted, released: Released
) -> dict[str, Any]:
    """Return what is reported of any release with what is of this one."""
    problem, solution, source = counted.problem, released.solution, counted.source
    drawn, opened, data = released.drawn, counted.opened, counted.data
    facts = with_checks(facts, released.checks, solution, source, drawn)
    stated = ("encoder", "distortion", "budget", "criteria")  # for who counts again
    of_data = {name: data[name] for name in stated if name in data}
    facts["asked"] = {"coding": counted.schema.to_dict(), **of_data}
    if counted.recoding:
        facts["recoding"] = counted.recoding
    if "bias" in counted.recoding:
        chance, unit = counted.recoding["bias"]["after"], nat(facts["units"]) / nat("bits")
        facts["risk_before_bias"] = chance if chance is None else chance * unit
    of_law = problem.criteria
    facts["notes"] = [*facts["notes"], *(relaxed(rule, of_law) for rule in counted.of_table)]
    if drawn is not None and options["draw"] == "balanced":
        words = _BALANCED.format("" if drawn.merging is None else ", before groups are merged")
        facts["draw"], facts["notes"] = "balanced", [*facts["notes"], words]
    facts = with_copied(facts, source, released.leaks, released.together)
    if released.repeated is not None:
        facts["sequel"] = released.repeated.document(options["units"])
        facts["notes"] = [*facts["notes"], *facts["sequel"]["statements"]]
    facts["order"] = counted.order.document()
    more = [
        *counted.order.lines,
        *remarks_on_dropped(opened, counted.schema, counted.row_id),
        *notes(),
    ]
    return {**facts, "notes": list(dict.fromkeys([*facts["notes"], *more]))}


def _code(options: Mapping[str, Any], released: Released) -> int:
    """Return the exit code: a table that breaks a criterion has one, unless that was accepted."""
    accepted = options["ensure"] is not None  # what the table breaks, not the law
    refused = (
        c for c in released.checks
        if c.refuses and not (accepted and c.breaks and c.law_holds is not False)
    )  # fmt: skip
    if released.drawn is not None and any(refused):
        return CODES["broken"]
    repeated, code = released.repeated, CODES[released.solution.status]
    apart = repeated is not None and repeated.matching.apart
    return code or (CODES[repeated.alone.status] if apart and repeated is not None else 0)
