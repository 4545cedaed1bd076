"""``cvxprivacy plan``: five questions about a table, and the problem and the command they make."""

from __future__ import annotations

import math
import os
import secrets
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy_sdc.formats.house import House
from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.columns import column_of, columns_of, leave_out
from cvxprivacy_sdc.statements.exits import as_options, note_reading, say, wants_json
from cvxprivacy_sdc.statements.outputs import (
    Output,
    progress,
    refuse_unwritable,
    steps,
    write_all,
)
from cvxprivacy_verifier.wording import many

if TYPE_CHECKING:
    from cvxprivacy_sdc.commands.proposals import ColumnFacts, Knee, Row
    from cvxprivacy_sdc.recoding.recoded_key import KeyRecoding

__all__ = ["plan"]

NONE = "none"
Check = Callable[[Sequence[str]], Any]  # of texts as an option has them


@click.command()
@click.argument("table", type=click.Path())
@click.option(
    "--sensitive", multiple=True, metavar="COLUMN[,…]", help="1. Which column is confidential?"
)
@click.option(
    "--key",
    multiple=True,
    metavar="COLUMN[,…]",
    help="2. Which columns could a stranger know?  They are what is changed.",
)
@click.option(
    "--criterion",
    multiple=True,
    metavar="NAME[=NUMBER[:MEASURE]]|none",
    help="3. What is promised of every group, beside the average?  As of `release`.",
)
@click.option("--budget", metavar="NUMBER", help="4. How much change is bearable?")
@shared.file("--out", "5. Where does the released table go?")
@click.option(
    "--row-id",
    metavar="COLUMN",
    help="Names each record, if these records will be released again.  The command then has a "
    "seed: keep it secret.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN[,…]",
    help="Columns that are not in the released table; without it all are.",
)
@shared.seed("Of the command.  By default it has none, or with --row-id a fresh one.")
@shared.bins("Other numbers are cut by --cells.")
@click.option(
    "--cells",
    type=int,
    metavar="NUMBER",
    help="Observed cells of the key at most: bins and most frequent values are chosen so.  By "
    "default 250, or one to 20 records if that is less.",
)
@click.option(
    "--distortion",
    multiple=True,
    metavar="COLUMN=KIND,…",
    help="As of `release`; by default steps between numbers, and whether a category changed.",
)
@click.option(
    "--missing",
    type=click.Choice(["level", "drop"]),
    help="Missing values: a letter of their own, as is proposed, or the record is left out.",
)
@click.option(
    "--plan",
    "name",
    default="plan",
    show_default=True,
    type=click.Path(),
    metavar="NAME",
    help="NAME.toml is the problem, for `cvxprivacy solve`, and NAME.sh the command.",
)
@click.option("--yes", is_flag=True, help="Ask nothing: take what is proposed.")
@shared.as_json(", and ask nothing")
@shared.force
@shared.reads_tables
def plan(table: str, reading: dict[str, Any], yes: bool, **options: Any) -> None:
    """Look at TABLE, propose how to release it, and write that down.

    Five questions are asked on a terminal, each with a proposal and why; an option answers its
    question beforehand.  Nothing is released: NAME.sh does that, from any folder.
    """
    asks = not yes and not wants_json() and _at_terminal()
    work = Planning(table, reading, options, asks=asks)
    try:
        work.ask()
    except click.Abort:
        raise KeyboardInterrupt from None
    work.write()
    if not asks:
        say(work.document, "\n".join(work.lines))


class Planning:
    """The way from a table to a plan; nothing is written until all is settled.

    Attributes
    ----------
    lines : list of str
        What is still to be printed: on a terminal everything is as soon as it is known.
    document : dict
        The same, for JSON.
    """

    def __init__(
        self, table: str, reading: Mapping[str, Any], options: Mapping[str, Any], *, asks: bool
    ) -> None:
        self.table, self.reading, self.options, self.asks = table, reading, options, asks
        self.lines: list[str] = []
        self.paths = {"problem": f"{options['name']}.toml", "command": f"{options['name']}.sh"}
        self.document: dict[str, Any] = {"table": table, "answers": []}
        for path in self.paths.values():
            refuse_unwritable({"plan": path}, table)
        # what an option says wrongly is refused before any work
        if options["budget"] is not None:
            _number(options["budget"])
        if options["out"] is not None:
            self._free(options["out"])
        _promises(options["criterion"])

    def ask(self) -> None:
        """Settle everything, question by question."""
        self._look()
        self._confidential()
        self._key()
        self._recode()
        self._promise()
        self._budget()
        self._leaving()

    # ---- a question ----------------------------------------------------------------------

    def _tell(self, *lines: str) -> None:
        if not self.asks:
            self.lines += lines
        elif lines:
            click.echo("\n".join(lines))

    def _settle(
        self, question: str, proposal: Sequence[str], why: str, typed: Sequence[str], check: Check
    ) -> Any:
        """Return what a question is answered with: by an option, at the terminal, as proposed."""
        answers = self.document["answers"]
        number, usual = f"{len(answers) + 1}.", ", ".join(proposal)
        by, text, reason = "proposal", usual, f"proposed: {why}"
        if typed:
            by, text, reason = "option", ", ".join(typed), "as the option says"
            value = check(typed)
        elif not self.asks:
            value = check(proposal)
        else:
            self._tell("", f"   {reason}")
            text, value = click.prompt(
                f"{number} {question}",
                default=usual,
                value_proc=_asked(lambda text: check(proposal if text == usual else [text])),
            )
            by = "proposal" if text == usual else "terminal"
        if typed or not self.asks:
            self._tell("", f"{number} {question} {text}", f"   {reason}")
        facts = {"question": question, "answer": text, "by": by, "proposal": usual, "why": why}
        answers.append(facts)
        return value

    def _columns(self, option: str, texts: Sequence[str]) -> list[str]:
        """Return columns of the table that records share values of."""
        names = columns_of(texts, self.header, option)
        for name in names:
            column = self.facts[name]
            if not column.telling:
                problem = f"{name!r} has one value"
                if column.values != 1:
                    problem = f"{name!r} has {column.values:,} values in {column.records:,} records"
                remedy = "name columns of which records share values"
                raise InputError(option, problem, remedy, value=name)
        return names

    # ---- one after the other -------------------------------------------------------------

    def _look(self) -> None:
        """Read the table, and show its columns."""
        from cvxprivacy.text import aligned
        from cvxprivacy_sdc.commands.proposals import facts_of
        from cvxprivacy_sdc.formats.table_files import open_table

        self.opened = note_reading(open_table(self.table, self.reading))
        self.header = self.opened.header
        with progress(self.opened.size, f"reading {Path(self.table).name}") as read:
            self.frame = self.opened.frame(None, dates=True, progress=read)
        columns = facts_of(self.frame)
        self.facts: dict[str, ColumnFacts] = {column.name: column for column in columns}
        records = columns[0].records if columns else 0
        if self.options["row_id"] is not None:
            self._naming(self.options["row_id"])
        rows = [(c.name, c.kind, f"{c.values:,}", f"{c.missing:,}") for c in columns]
        self._tell(f"{self.table}: {records:,} records, {len(columns)} columns")
        self._tell(*_indented(aligned([("column", "of", "values", "missing"), *rows])))
        self.document |= {"records": records, "columns": [asdict(c) for c in columns]}

    def _confidential(self) -> None:
        """Settle W, and bands of it."""
        from cvxprivacy_sdc.commands.proposals import FEW, PARTS, confidential

        proposal, why = confidential([*self.facts.values()])
        self.sensitive = self._settle(
            "Which column is confidential?", [proposal], why, self.options["sensitive"],
            lambda texts: self._columns("--sensitive", texts),
        )  # fmt: skip
        self.bins = shared.bins_of(self.options["bins"], self.header)
        wide = [
            n for n in self.sensitive
            if self.facts[n].numbers and self.facts[n].values > FEW and n not in self.bins
        ]  # fmt: skip
        self.bins |= dict.fromkeys(wide, PARTS)
        self.typed_bins = [*self.options["bins"], *(f"{name}={PARTS}" for name in wide)]
        if wide:
            bands = f"five bands of about equal counts (--bins {PARTS}), as it has many values"
            self._tell(f"   {', '.join(wide)}: {bands}")

    def _key(self) -> None:
        """Measure what each other column tells of W, and settle the key."""
        from cvxprivacy.tables.schema import TableSchema
        from cvxprivacy.text import aligned
        from cvxprivacy_sdc.commands.proposals import knowable, others
        from cvxprivacy_sdc.copied.untouched import untouched

        possible = others([*self.facts.values()], self.sensitive)
        of_sensitive = {name: self.bins[name] for name in self.sensitive if name in self.bins}
        schema = TableSchema.of(
            self.frame, sensitive=self.sensitive, key=possible[0].name, side=None, weights=None,
            bins=of_sensitive, missing="level",
        )  # fmt: skip
        columns = [name for name in self.header if name not in self.sensitive]
        with progress(len(columns), "columns") as measured:
            leaks = untouched(self.frame, schema, columns=columns, progress=measured)
        proposals, why = knowable(possible, {leak.column: leak for leak in leaks})
        about = ", ".join(self.sensitive)
        drawn = f", in {many(leaks[0].records, 'record')} drawn of all" if leaks[0].sampled else ""
        self._tell("", f"what each column tells of {about} by itself, less chance{drawn}:")
        rows = [("column", "bits", "99 %", "")]
        for leak in leaks:
            bits, between = "?", "too few records to a value"
            if leak.information is not None:
                least = "≥ " if leak.coarse or leak.intervals is not None else ""
                bits = f"{least}{leak.corrected:.4f}"
                between = f"{leak.lower:.4f} to {leak.upper:.4f}"
            named = "fewer than two records share a value" if leak.names_records else ""
            rows.append((leak.column, bits, between, proposals.get(leak.column, named)))
        self._tell(*_indented(aligned(rows)))
        self.document["tells"] = [
            {"column": leak.column, "bits": leak.information and leak.corrected,
             "lower": leak.lower, "upper": leak.upper, "words": str(leak)} for leak in leaks
        ]  # fmt: skip

        def check(texts: Sequence[str]) -> list[str]:
            names = self._columns("--key", texts)
            both = [name for name in names if name in self.sensitive]
            if both:
                remedy = "name it once: it is copied"
                raise InputError("--key", f"{both[0]!r} is confidential", remedy, value=both[0])
            return names

        self.key = self._settle(
            "Which columns could a stranger know?", [*proposals], why,
            self.options["key"], check,
        )  # fmt: skip
        leave_out(
            self.opened, self.options["drop"] or None, None, key=self.key,
            used=[*self.sensitive, *self.key], row_id=self.options["row_id"],
        )  # fmt: skip
        self.dropped = [*self.opened.dropped]

    def _recode(self) -> None:
        """Choose bins and levels of the key, and how changes are measured."""
        from cvxprivacy_sdc.commands.proposals import (
            MOST_CELLS,
            PER_CELL,
            distortions,
            small_groups,
        )
        from cvxprivacy_sdc.recoding.recoded_key import FINEST
        from cvxprivacy_sdc.statements.recodings import (
            chance_in_words,
            chosen,
            options_of,
            recoded,
            recoded_text,
        )
        from cvxprivacy_sdc.statements.statement import source_of

        roles = [*self.sensitive, *self.key]
        self.missing = self.options["missing"]
        gaps = [name for name in roles if self.facts[name].missing]
        if gaps and self.missing is None:
            self.missing = "level"
            self._tell(f"   missing values of {', '.join(gaps)}: a letter of their own")
        counting = {
            "sensitive": self.sensitive, "key": self.key, "bins": self.bins,
            "missing": self.missing or "refuse",
        }  # fmt: skip
        records = next(iter(self.facts.values())).records
        typed, usual = self.options["cells"], max(2, min(MOST_CELLS, records // PER_CELL))
        settled: dict[str, Any] = counting
        choice: KeyRecoding | None = None
        try:
            settled, choice = chosen(self.opened, counting, usual if typed is None else typed)
        except InputError as error:  # the coarsest key has more
            if error.argument != "cells" or typed is not None:
                raise
        fine = all(c.values <= FINEST for c in map(self.facts.__getitem__, self.key) if c.ordered)
        if choice is not None and fine and choice.cells <= (usual if typed is None else typed):
            settled, choice = counting, None  # of more values the cells are of intervals
        self.source = source = source_of(self.opened, **settled)[1]
        assert source.schema is not None
        self.recoding = [] if choice is None else shlex.split(" ".join(options_of(choice)))
        facts = recoded(settled, source.schema, choice)
        self.distortion = [*self.options["distortion"]] or distortions(source, self.facts)
        self.before = source.information()
        self.small = small_groups(source)
        tells = f"the key tells {self.before:.4f} bits of {', '.join(self.sensitive)}"
        bias = chance_in_words(source.bias() if choice is None else facts["bias"]["after"], facts)
        measured = ", ".join(self.distortion) or "a record counts once if anything in it changed"
        self._tell("", *recoded_text(facts), f"{tells}, {bias}")
        self._tell(
            f"change is measured by {measured}",
            f"{many(len(source.x), 'group')} of equal keys, the smallest of "
            f"{many(self.small[0], 'record')}; {self.small[1]:,} of fewer than 5",
        )
        self.document |= {
            "recoding": facts, "distortion": self.distortion, "information": self.before,
            "groups": {"all": len(source.x), "smallest": self.small[0], "small": self.small[1]},
        }  # fmt: skip

    def _promise(self) -> None:
        """Settle criteria, in plain words."""
        from cvxprivacy.text import aligned

        small = self.small[1]
        proposal, why = NONE, "no group has fewer than 5 records: the average alone is bounded"
        if small:
            proposal = "KAnonymity=5"
            why = f"{many(small, 'group')} of fewer than 5 records: these point at people"
        self._tell(
            "",
            "   what may be promised beside the average, several by a comma:",
            *_indented(aligned(list(_PROMISES.items())), by=3),
        )

        self.criteria = self._settle(
            "What is promised of every group?", [proposal], why, self.options["criterion"],
            _promises,
        )  # fmt: skip
        for text in self.criteria:
            self._tell(f"   {_in_words(text)}")

    def _budget(self) -> None:
        """Solve for the curve, show it and where it bends, and settle the budget."""
        from cvxprivacy.text import aligned
        from cvxprivacy_sdc.commands.proposals import curve_of, knee_of, row_of, rows_of
        from cvxprivacy_sdc.dossier.report import relaxed
        from cvxprivacy_sdc.statements.statement import of_table, problem_data, problem_of

        data = problem_data(self._parsed(1.0), self.header)
        problem = problem_of(data, self.source)
        with steps() as on_step:
            curve = curve_of(problem, on_step)
        rows = rows_of(curve, self.source)
        self.knee: Knee = knee_of(rows)
        self._tell("", "the least that any release tells within a budget, as is proved:")
        table = [(*_cells(row, self.before), "← here it bends" * (row is self.knee.at))
                 for row in rows]  # fmt: skip
        head = ("budget", "bits, at least", "at most", "of before", "records unchanged", "")
        self._tell(
            *_indented(aligned([head, *table])),
            *(f"  {relaxed(r, problem.criteria)}" for r in of_table(data)),
        )
        ties = ", ".join(f"{budget:g}" for budget in self.knee.ties)
        depth = _rounded(self.knee.depth, self.before, up=False)
        why = f"the curve is farthest below the straight line between its ends, by {depth} "
        why += "bits at least"
        why = f"{why}; as far, by what is proved: {ties}" if ties else why

        def check(texts: Sequence[str]) -> Row:
            budget = _number(*texts)
            for row in rows:
                if row.budget == budget:
                    return row
            return row_of(budget, problem.at(budget=budget).solve(), self.source)

        self.row: Row = self._settle(
            "How much change is bearable?", [f"{self.knee.at.budget!r}"], why,
            _one(self.options["budget"]), check,
        )  # fmt: skip
        _, low, high, share, kept = _cells(self.row, self.before)
        self._tell(
            f"   at {self.row.budget:g} between {low} and {high} bits are told, at most {share} of "
            f"what the key tells; {kept} of the records keep their key, on average"
        )
        self.document |= {
            "curve": [asdict(row) for row in rows],
            "bend": asdict(self.knee),
            "chosen": asdict(self.row),
        }

    def _leaving(self) -> None:
        """Show what the other columns tell, and settle what leaves the house."""
        from cvxprivacy_sdc.commands.attack import copied_disclosure
        from cvxprivacy_sdc.copied.order import OrderTest
        from cvxprivacy_sdc.copied.untouched import advised, undoing

        schema = self.source.schema
        assert schema is not None
        leaks, _ = copied_disclosure(self.frame, schema, self.dropped)
        about = ", ".join(schema.sensitive)
        advice = [entry["words"] for entry in undoing(leaks, schema.key)]
        advice += advised([leak for leak in leaks if leak.about == about], self.row.upper)
        order = OrderTest.of(self.frame, schema, dropped=self.dropped)
        self.shuffle = any(not one.by for one in order.remaining)
        advice += order.lines
        if advice:
            self._tell("", *_indented(advice, by=3))
        self.document["advice"] = advice

        self.out = self._settle(
            self._others_leave, [self._free_name()],
            "a new file beside the plan", _one(self.options["out"]),
            lambda texts: self._free(*texts),
        )  # fmt: skip
        self.row_id, self.seed = self.options["row_id"], self.options["seed"]
        if self.asks and self.row_id is None:
            self._name_records()
        if self.row_id is not None and self.seed is None:
            self.seed = secrets.randbits(128)

    @property
    def _others_leave(self) -> str:
        """The question, which says what becomes of columns that are not changed."""
        left_out = f" without {', '.join(self.dropped)}" if self.dropped else ""
        return f"What leaves the house{left_out}, all other columns as they are?"

    def _naming(self, name: str) -> str:
        """Return a column that names each record, or refuse it."""
        name = column_of(name, self.header, "--row-id")
        column = self.facts[name]
        if column.values != column.records:
            problem = f"{name!r} has {column.values:,} values in {column.records:,} records"
            raise InputError("--row-id", problem, "name a column that names each", value=name)
        return name

    def _name_records(self) -> None:
        """Ask for a column that names each record, if there is one."""
        names = [c.name for c in self.facts.values() if c.values == c.records and c.values]
        if names:
            self._tell(
                "   if these records will be released again, a column that names each keeps "
                f"releases from being averaged: {', '.join(names)}"
            )

            def check(text: str) -> str | None:
                return None if text == NONE else self._naming(text)

            self.row_id = click.prompt("   row id", default=NONE, value_proc=_asked(check))[1]

    def _free(self, out: str) -> str:
        """Return the name of a released table, unless that cannot be."""
        from cvxprivacy_sdc.formats.framed import output_format

        output_format(self.table, out)
        for path in (out, *_beside(out)):
            refuse_unwritable({"out": path}, self.table, *self.paths.values())
            if Path(path).exists():
                remedy = "name another: the command that is written replaces nothing"
                raise InputError("--out", f"{path} is there already", remedy, value=path)
        return out

    def _free_name(self) -> str:
        """Return a name of the released table that nothing has yet."""
        from cvxprivacy_sdc.formats.framed import READ_ONLY, ending_of

        ending, zipped = ending_of(self.table)
        file = Path(self.table).name
        stem = file[: len(file) - len(ending) - 3 * zipped] if ending else file
        ending = ".csv" if ending in READ_ONLY else ending
        folder = Path(self.options["name"]).parent
        for more in ("", *(f".{i}" for i in range(2, 1_000))):
            path = folder / f"{stem}.released{more}{ending}{'.gz' * zipped}"
            if not any(Path(name).exists() for name in (path, *_beside(str(path)))):
                break
        return str(path)

    # ---- what is written -----------------------------------------------------------------

    def _arguments(self, table: str, budget: float, out: str | None = None) -> list[list[str]]:
        """Return the arguments of ``release``, an option with its value each."""
        how = {**self.reading, "missing": self.missing, "row-id": None, "seed": None}
        if out is not None:
            how |= {"row-id": self.row_id, "seed": self.seed}
        several = {"sensitive": self.sensitive, "key": self.key, "bins": self.typed_bins}
        options = [[f"--{name}", text] for name, texts in several.items() for text in texts]
        options += [[*pair] for pair in zip(self.recoding[::2], self.recoding[1::2], strict=True)]
        several = {"distortion": self.distortion, "criterion": self.criteria}
        options += [[f"--{name}", text] for name, texts in several.items() for text in texts]
        options += [["--budget", repr(budget)]]
        for name, value in how.items():
            values = [] if value is None else value if isinstance(value, list | tuple) else [value]
            options += [[f"--{name}", "tab" if v == "\t" else str(v)] for v in values]
        if out is not None:
            options += [["--drop", name] for name in self.dropped]
            options += [["--shuffle"]] * self.shuffle
            options += [["--out", out], ["--certificate", _beside(out)[0]]]
        return [["release", f"./{table}" if table.startswith("-") else table], *options]

    def _parsed(self, budget: float) -> dict[str, Any]:
        """Return the options of ``release`` as it reads them: what is planned is what is run."""
        from cvxprivacy_sdc.commands.release import release

        _, *arguments = [part for pair in self._arguments(self.table, budget) for part in pair]
        parameters = release.make_context("release", arguments).params
        recoding = {name: parameters[name] for name in ("group", "hierarchy", "level", "top")}
        return {**parameters, "recoding": recoding}

    def write(self) -> None:
        """Write the problem and the command."""
        from cvxprivacy.files import relative
        from cvxprivacy_sdc.statements.statement import law_criteria, problem_data, problem_text

        data = problem_data(self._parsed(self.row.budget), self.header)
        rules = law_criteria(data, self.source)
        problem = problem_text(self.paths["problem"], data, self.table, self.reading, rules)
        folder = os.path.realpath(Path(self.paths["command"]).absolute().parent)
        here = [
            [part[0], "…"] if part[0] == "--seed" else part  # a secret is not printed
            for part in self._arguments(self.table, self.row.budget, self.out)
        ]
        table, out = (relative(Path(path).absolute(), folder) for path in (self.table, self.out))
        script = _SCRIPT.format(command=_typed(self._arguments(table, self.row.budget, out)))
        targets = [
            Output("problem", self.paths["problem"], lambda file: file.write(problem)),
            Output("command", self.paths["command"], lambda file: file.write(script),
                   private=self.seed is not None),
        ]  # fmt: skip
        write_all(targets, House(None))
        secret = "" if self.seed is None else "; it has the seed, so only you can read it"
        self._tell(
            "",
            "the command:",
            *_indented(_typed(here).splitlines()),
            f"{self.paths['problem']}: the problem, for `cvxprivacy solve`",
            f"{self.paths['command']}: the command, for `sh`, from any folder{secret}",
        )
        files = {output.option: output.path for output in targets if output.path is not None}
        command = ["cvxprivacy", *(part for pair in here for part in pair)]
        self.document |= {"command": command, "files": files}


# ---- words -------------------------------------------------------------------------------

_PROMISES = {
    NONE: "nothing: who reads the whole table learns as little as can be",
    "KAnonymity=5": "against who looks for a person: each released group has 5 records at least",
    "TCloseness=0.2": "against who looks at a group: none tells more than 0.2 bits of its members",
}
_SCRIPT = """#!/bin/sh
# The release that `cvxprivacy plan` wrote down; paths are as seen from this file's folder.
CDPATH= cd -- "$(dirname -- "$0")" || exit
exec {command} "$@"
"""


def _at_terminal() -> bool:
    return sys.stdin.isatty()


def _number(text: str) -> float:
    return shared.number_of(text, "--budget", f"{text!r}", "pass a number, such as 0.05")


def _promises(texts: Sequence[str]) -> list[str]:
    """Return the criteria that an answer names."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    parts = [] if parts == [NONE] else parts
    shared.criteria_of(parts)
    return parts


def _one(typed: str | None) -> list[str]:
    return [] if typed is None else [typed]


def _asked(check: Callable[[str], Any]) -> Callable[[str], tuple[str, Any]]:
    """Return a check that asks again what cannot be."""

    def answer(text: str) -> tuple[str, Any]:
        try:
            return text, check(text)
        except (InputError, InfeasibleError) as error:
            raise click.UsageError(as_options(str(error))) from None

    return answer


def _typed(arguments: Sequence[Sequence[str]]) -> str:
    """Return a command as a shell takes it, an option to a line."""
    return " \\\n    ".join(
        shlex.join(part) for part in [["cvxprivacy", *arguments[0]], *arguments[1:]]
    )


def _beside(out: str) -> tuple[str, str]:
    """Return the proof of a released table, and what `release` writes beside both."""
    return f"{out}.proof.json", f"{out}.house.json"


def _in_words(text: str) -> str:
    """Return what a criterion asks for."""
    ((kind, arguments),) = shared.criteria_of([text])
    words = shared.stated_criterion({"kind": kind, **arguments}).in_words()
    return str(words.asks)


def _indented(lines: Sequence[str], by: int = 2) -> list[str]:
    return [" " * by + line for line in lines]


def _rounded(value: float, before: float, *, up: bool) -> str:
    """Return bits to the same decimals for all: five digits of what is told before."""
    unit = Decimal(1).scaleb(math.floor(math.log10(before)) - 4)
    return f"{Decimal(repr(value)).quantize(unit, ROUND_CEILING if up else ROUND_FLOOR):f}"


def _cells(row: Row, before: float) -> tuple[str, str, str, str, str]:
    """Return a row as it is printed: every bound rounded to its own side."""
    share, kept = 100 * row.upper / before, 1_000 * row.kept
    return (
        f"{row.budget:g}",
        _rounded(row.lower, before, up=False),
        _rounded(row.upper, before, up=True),
        f"{math.ceil(round(share, 6))} %",
        f"{math.floor(round(kept, 6)) / 10:.1f} %",
    )
