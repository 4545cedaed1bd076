"""The five questions of ``plan``, one after the other, and the two files that they make."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.files import relative
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.text import aligned, plain, upwards
from cvxprivacy_sdc.commands import proposals
from cvxprivacy_sdc.commands.proposals import Row
from cvxprivacy_sdc.commands.release import release
from cvxprivacy_sdc.copied.joint_disclosure import copied_disclosure
from cvxprivacy_sdc.copied.order import OrderTest
from cvxprivacy_sdc.copied.untouched import advised, undoing, untouched
from cvxprivacy_sdc.dossier.report import relaxed
from cvxprivacy_sdc.formats.framed import READ_ONLY, ending_of, output_format
from cvxprivacy_sdc.formats.house import House
from cvxprivacy_sdc.formats.table_files import open_table
from cvxprivacy_sdc.recoding.recoded_key import FINEST
from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.columns import column_of, columns_of, leave_out
from cvxprivacy_sdc.statements.exits import as_options, note_reading
from cvxprivacy_sdc.statements.outputs import Output, progress, refuse_unwritable, steps, write_all
from cvxprivacy_sdc.statements.recodings import (
    chance_in_words,
    chosen,
    options_of,
    recoded,
    recoded_text,
)
from cvxprivacy_sdc.statements.statement import (
    law_criteria,
    of_table,
    problem_data,
    problem_of,
    problem_text,
    source_of,
)
from cvxprivacy_verifier.wording import many

__all__ = ["Planning"]

NONE = "none"  # the answer that promises nothing
MOST_CELLS, PER_CELL = 250, 20  # of a key, and records to a cell on average
FEW = 20  # values of a number that needs no bands to be confidential
PARTS = "q5"  # of one that does
SMALL = 5  # records, under which a group is small
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
        # a wrong option is refused before any work
        self.budget, self.out = ([options[n]] if options[n] else [] for n in ("budget", "out"))
        for typed, check in ((self.budget, _number), (self.out, self._free)):
            if typed:
                check(typed)
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

    def _tell(self, *lines: str, by: int = 0) -> None:
        """Print lines, indented by so many blanks."""
        lines = tuple(" " * by + line for line in lines)
        if not self.asks:
            self.lines += lines
        elif lines:
            click.echo("\n".join(lines))

    def _settle(
        self, question: str, proposed: Sequence[str], why: str, typed: Sequence[str],
        check: Callable[[Sequence[str]], Any],
    ) -> Any:  # fmt: skip
        """Return what a question is answered with: by an option, at the terminal, as proposed."""
        answers, proposal = self.document["answers"], ", ".join(proposed)
        asked = f"{len(answers) + 1}. {question}"
        reason = "   as the option says" if typed else f"   proposed: {why}"
        if self.asks and not typed:
            self._tell("", reason)
            text, value = click.prompt(
                asked, default=proposal,
                value_proc=_asked(lambda text: check(proposed if text == proposal else [text])),
            )  # fmt: skip
            by = "proposal" if text == proposal else "terminal"
        else:
            text, value = ", ".join(typed or proposed), check(typed or proposed)
            by = "option" if typed else "proposal"
            self._tell("", f"{asked} {text}", reason)
        facts = {"question": question, "answer": text, "by": by, "proposal": proposal, "why": why}
        answers.append(facts)
        return value

    def _columns(self, option: str, texts: Sequence[str]) -> list[str]:
        """Return columns of the table whose values records share; the key is not confidential."""
        names = columns_of(texts, self.header, option)
        for column in map(self.facts.__getitem__, names):
            if not column.shared:
                problem = f"{column.name!r} has {many(column.values, 'value')} in "
                problem += many(self.records, "record")
                remedy = "name columns of which records share values"
                raise InputError(option, problem, remedy, value=column.name)
            if option == "--key" and column.name in self.sensitive:
                problem, remedy = f"{column.name!r} is confidential", "name it once: it is copied"
                raise InputError(option, problem, remedy, value=column.name)
        return names

    # ---- one after the other -------------------------------------------------------------

    def _look(self) -> None:
        """Read the table, and show its columns."""
        self.opened = note_reading(open_table(self.table, self.reading))
        self.header = self.opened.header
        with progress(self.opened.size, f"reading {Path(self.table).name}") as read:
            self.frame = self.opened.frame(None, dates=True, progress=read)
        columns = proposals.facts_of(self.frame)
        self.facts = {column.name: column for column in columns}
        self.records = columns[0].records if columns else 0
        if (row_id := self.options["row_id"]) is not None:
            row_id = column_of(row_id, self.header, "--row-id")
            if (values := self.facts[row_id].values) != self.records:
                problem = f"{row_id!r} has {values:,} values in {self.records:,} records"
                raise InputError("--row-id", problem, "name a column that names each", value=row_id)
        self.row_id, self.seed = row_id, None if row_id is None else secrets.randbits(128)
        rows = [(c.name, c.kind, f"{c.values:,}", f"{c.missing:,}") for c in columns]
        self._tell(f"{self.table}: {self.records:,} records, {len(columns)} columns")
        self._tell(*aligned([("column", "of", "values", "missing"), *rows]), by=2)
        self.document |= {"records": self.records, "columns": [asdict(c) for c in columns]}

    def _confidential(self) -> None:
        """Settle W, and bands of it."""
        proposal, why = proposals.confidential([*self.facts.values()])
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
        about = ", ".join(self.sensitive)
        possible = [c for c in self.facts.values() if c.shared and c.name not in self.sensitive]
        if not possible:
            problem = f"no column beside {about} has values that records share"
            raise InputError("--key", problem, "pass a table with columns that others may know")
        of_sensitive = {name: self.bins[name] for name in self.sensitive if name in self.bins}
        schema = TableSchema.of(
            self.frame, sensitive=self.sensitive, key=possible[0].name, side=None, weights=None,
            bins=of_sensitive, missing="level",
        )  # fmt: skip
        columns = [name for name in self.header if name not in self.sensitive]
        with progress(len(columns), "columns") as measured:
            leaks = untouched(self.frame, schema, columns=columns, progress=measured)
        information = {leak.column: leak.corrected for leak in leaks}
        proposed, why = proposals.knowable(possible, information)
        because = {name: f": {reason}" for name, reason in proposed.items()}
        self._tell("", f"what each column tells of {about} by itself, less chance, at 99 %:")
        self._tell(*(f"{leak}{because.get(leak.column, '')}" for leak in leaks), by=2)
        self.document["tells"] = [
            {"column": leak.column, "bits": leak.information and leak.corrected,
             "lower": leak.lower, "upper": leak.upper, "words": str(leak)} for leak in leaks
        ]  # fmt: skip
        self.key = self._settle(
            "Which columns could a stranger know?", [*proposed], why, self.options["key"],
            lambda texts: self._columns("--key", texts),
        )  # fmt: skip
        leave_out(
            self.opened, self.options["drop"] or None, None, key=self.key,
            used=[*self.sensitive, *self.key], row_id=self.row_id,
        )  # fmt: skip
        self.dropped = [*self.opened.dropped]

    def _recode(self) -> None:
        """Choose bins and levels of the key, and how changes are measured."""
        self.missing = self.options["missing"]
        gaps = [n for n in (*self.sensitive, *self.key) if self.facts[n].missing]
        if gaps and self.missing is None:
            self.missing = "level"
            self._tell(f"   missing values of {', '.join(gaps)}: a letter of their own")
        settled: dict[str, Any] = {
            "sensitive": self.sensitive, "key": self.key, "bins": self.bins,
            "missing": self.missing or "refuse",
        }  # fmt: skip
        counting, choice, typed = settled, None, self.options["cells"]
        most = typed or max(2, min(MOST_CELLS, self.records // PER_CELL))
        try:
            settled, choice = chosen(self.opened, counting, most)
        except InputError as error:  # the coarsest key has more
            if error.argument != "cells" or typed is not None:
                raise
        fine = all(self.facts[n].values <= FINEST or not self.facts[n].ordered for n in self.key)
        if choice is not None and fine and choice.cells <= most:
            settled, choice = counting, None  # of more values the cells are of intervals
        self.source = source = source_of(self.opened, **settled)[1]
        assert source.schema is not None
        self.recoding = [] if choice is None else shlex.split(" ".join(options_of(choice)))
        facts = recoded(settled, source.schema, choice)
        ordered = {n for n in self.key if n in source.schema.bins or self.facts[n].ordered}
        kinds = [f"{n}={'ordinal' if n in ordered else 'hamming'}" for n in self.key]
        self.distortion = [*self.options["distortion"]] or kinds * bool(ordered)
        self.before = source.information()
        sizes = np.rint(source.p_x * source.records).astype(int)
        smallest, self.small = int(sizes.min()), int((sizes < SMALL).sum())
        bias = chance_in_words(source.bias() if choice is None else facts["bias"]["after"], facts)
        measured = ", ".join(self.distortion) or "a record counts once if anything in it changed"
        self._tell(
            "",
            *recoded_text(facts),
            f"the key tells {self.before:.4f} bits of {', '.join(self.sensitive)}, {bias}",
            f"change is measured by {measured}",
            f"{many(len(sizes), 'group')} of equal keys, the smallest of "
            f"{many(smallest, 'record')}; {self.small:,} of fewer than {SMALL}",
        )
        self.document |= {
            "recoding": facts, "distortion": self.distortion, "information": self.before,
            "groups": {"all": len(sizes), "smallest": smallest, "small": self.small},
        }  # fmt: skip

    def _promise(self) -> None:
        """Settle criteria, in plain words."""
        proposal, why = NONE, "no group has fewer than 5 records: the average alone is bounded"
        if self.small:
            proposal = "KAnonymity=5"
            why = f"{many(self.small, 'group')} of fewer than 5 records: these point at people"
        self._tell("", "   what may be promised beside the average, several by a comma:")
        self._tell(*aligned(list(_PROMISES.items())), by=3)
        self.criteria = self._settle(
            "What is promised of every group?", [proposal], why, self.options["criterion"],
            _promises,
        )  # fmt: skip
        for kind, arguments in shared.criteria_of(self.criteria):
            rule = shared.stated_criterion({"kind": kind, **arguments})
            self._tell(f"   {rule.in_words().asks}")

    def _budget(self) -> None:
        """Solve for the curve, show it and where it bends, and settle the budget."""
        data = problem_data(self._parsed(1.0), self.header)
        problem = problem_of(data, self.source)
        with steps() as on_step:
            rows = proposals.curve_of(problem, self.source, on_step)
        knee, depth = proposals.knee_of(rows)
        head = ("budget", "bits", "of before", "records unchanged", "")
        table = [(*self._cells(row), "← here it bends" * (row is knee)) for row in rows]
        self._tell("", "what the best release within a budget tells at most, as is proved:")
        self._tell(*aligned([head, *table]), by=2)
        self._tell(*(relaxed(rule, problem.criteria) for rule in of_table(data)), by=4)

        def check(texts: Sequence[str]) -> Row:
            budget = _number(texts)
            solved = next((row for row in rows if row.budget == budget), None)
            return solved or proposals.row_of(
                budget, problem.at(budget=budget).solve(), self.source
            )

        why = "the curve is farthest below the straight line between its ends, by "
        why += f"{plain(depth, 3)} bits"
        self.row: Row = self._settle(
            "How much change is bearable?", [repr(knee.budget)], why, self.budget, check
        )
        budget, most, share, kept = self._cells(self.row)
        self._tell(
            f"   at {budget} at most {most} bits are told, {share} of what the key tells; {kept} "
            "of the records keep their key, on average"
        )
        self.document |= {
            "curve": [asdict(row) for row in rows],
            "bend": {"at": asdict(knee), "depth": depth},
            "chosen": asdict(self.row),
        }

    def _cells(self, row: Row) -> tuple[str, str, str, str]:
        """Return a row as it is printed."""
        share = f"{row.upper / self.before:.0%}"
        return f"{row.budget:g}", upwards(row.upper), share, f"{row.kept:.1%}"

    def _leaving(self) -> None:
        """Show what the other columns tell, and settle what leaves the house."""
        schema = self.source.schema
        assert schema is not None
        leaks, _ = copied_disclosure(self.frame, schema, self.dropped, progress)
        about = ", ".join(schema.sensitive)
        advice = [entry["words"] for entry in undoing(leaks, schema.key)]
        advice += advised([leak for leak in leaks if leak.about == about], self.row.upper)
        order = OrderTest.of(self.frame, schema, dropped=self.dropped)
        self.shuffle = any(not one.by for one in order.remaining)
        advice += order.lines
        self._tell(*[""] * bool(advice), *(f"   {line}" for line in advice))
        self.document["advice"] = advice
        left_out = f" without {', '.join(self.dropped)}" if self.dropped else ""
        ending, zipped = ending_of(self.table)
        stem = Path(self.table).name.removesuffix(".gz" * zipped).removesuffix(ending or "")
        ending = f"{'.csv' if ending in READ_ONLY else ending}{'.gz' * zipped}"
        free = Path(self.options["name"]).parent / f"{stem}.released{ending}"
        self.released = self._settle(
            f"What leaves the house{left_out}, all other columns as they are?", [str(free)],
            "a new file beside the plan", self.out, self._free,
        )  # fmt: skip

    def _free(self, typed: Sequence[str]) -> str:
        """Return the name of a released table, unless that cannot be."""
        (out,) = typed
        output_format(self.table, out)
        for path in (out, f"{out}.proof.json", f"{out}.house.json"):
            refuse_unwritable({"out": path}, self.table, *self.paths.values())
            if Path(path).exists():
                remedy = "name another: the command that is written replaces nothing"
                raise InputError("--out", f"{path} is there already", remedy, value=path)
        return out

    # ---- what is written -----------------------------------------------------------------

    def _arguments(self, table: str, budget: float, out: str | None = None) -> list[list[str]]:
        """Return the arguments of ``release``, an option with its value each."""
        named: list[tuple[str, Any]] = [
            ("sensitive", self.sensitive), ("key", self.key), ("bins", self.typed_bins),
            *((name.removeprefix("--"), value)
              for name, value in zip(self.recoding[::2], self.recoding[1::2], strict=True)),
            ("distortion", self.distortion), ("criterion", self.criteria),
            ("budget", repr(budget)), *self.reading.items(), ("missing", self.missing),
        ]  # fmt: skip
        if out is not None:
            named += [("row-id", self.row_id), ("seed", self.seed), ("drop", self.dropped)]
            named += [("out", out), ("certificate", f"{out}.proof.json")]
        options = [
            [f"--{name}", "tab" if one == "\t" else str(one)]
            for name, value in named
            for one in (value if isinstance(value, list | tuple) else [value])
            if one is not None
        ]
        options += [["--shuffle"]] * (out is not None and self.shuffle)
        return [["release", f"./{table}" if table.startswith("-") else table], *options]

    def _parsed(self, budget: float) -> dict[str, Any]:
        """Return the options of ``release`` as it reads them: what is planned is what is run."""
        _, *arguments = [part for pair in self._arguments(self.table, budget) for part in pair]
        parameters = release.make_context("release", arguments).params
        recoding = {name: parameters[name] for name in ("group", "hierarchy", "level", "top")}
        return {**parameters, "recoding": recoding}

    def write(self) -> None:
        """Write the problem and the command."""
        data = problem_data(self._parsed(self.row.budget), self.header)
        rules = law_criteria(data, self.source)
        problem = problem_text(self.paths["problem"], data, self.table, self.reading, rules)
        folder = os.path.realpath(Path(self.paths["command"]).absolute().parent)
        here = [
            [part[0], "…"] if part[0] == "--seed" else part  # a secret is not printed
            for part in self._arguments(self.table, self.row.budget, self.released)
        ]
        table, out = (relative(Path(p).absolute(), folder) for p in (self.table, self.released))
        script = _SCRIPT.format(command=_typed(self._arguments(table, self.row.budget, out)))
        targets = [
            Output("problem", self.paths["problem"], lambda file: file.write(problem)),
            Output("command", self.paths["command"], lambda file: file.write(script),
                   private=self.seed is not None),
        ]  # fmt: skip
        write_all(targets, House(None))
        secret = "" if self.seed is None else "; it has the seed, so only you can read it"
        self._tell("", "the command:")
        self._tell(*_typed(here).splitlines(), by=2)
        self._tell(
            f"{self.paths['problem']}: the problem, for `cvxprivacy solve`",
            f"{self.paths['command']}: the command, for `sh`, from any folder{secret}",
        )
        command = ["cvxprivacy", *(part for pair in here for part in pair)]
        self.document |= {"command": command, "files": self.paths}


def _number(texts: Sequence[str]) -> float:
    (text,) = texts
    return shared.number_of(text, "--budget", f"{text!r}", "pass a number, such as 0.05")


def _promises(texts: Sequence[str]) -> list[str]:
    """Return the criteria that an answer names."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    parts = [] if parts == [NONE] else parts
    shared.criteria_of(parts)
    return parts


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
    lines = [["cvxprivacy", *arguments[0]], *arguments[1:]]
    return " \\\n    ".join(shlex.join(part) for part in lines)
