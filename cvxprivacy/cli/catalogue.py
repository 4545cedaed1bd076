"""Everything that may be asked for, with its unit: what ``release --help`` lists at its end."""

from __future__ import annotations

from collections.abc import Iterator

import click

__all__ = ["Catalogued", "criteria"]

DISTORTIONS = {
    "hamming": "1 where the value changes: its mean is the share of records",
    "ordinal": "steps between ordered values, as a share of all steps",
    "absolute_error": "the change, in the column's unit (years); bands count as their middles",
    "squared_error": "the change squared, in the square of that unit",
}


class Catalogued(click.Command):
    """A command whose help ends with everything that its options may ask for."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write criteria, leakages and distortions, a line each."""
        sections = {
            "Criteria (W the confidential column, X the key)": criteria(),
            "Measures of leakage (pure numbers, but for information)": leakages(),
            "Distortions of a key column (age=ordinal)": iter(DISTORTIONS.items()),
        }
        for title, entries in sections.items():
            with formatter.section(title):
                formatter.write_dl(list(entries), col_max=34)


def criteria() -> Iterator[tuple[str, str]]:
    """Yield each criterion as it is typed, with what it asks for and in which unit."""
    from cvxprivacy import criteria as listed
    from cvxprivacy.cli.typed import criteria_of, stated_criterion

    kinds = (getattr(listed, name) for name in listed.__all__)
    examples = (text for kind in kinds if kind.words for text in kind.words.examples)
    for typed in examples:
        ((kind, arguments),) = criteria_of([typed])
        words = stated_criterion({"kind": kind, **arguments}).in_words()
        complete = "=" not in typed or not words.unit or words.unit in words.asks
        yield typed, words.asks if complete else f"{words.asks} [{words.unit}]"


def leakages() -> Iterator[tuple[str, str]]:
    """Yield each measure of leakage as it is typed, with what it means."""
    from cvxprivacy.cli.typed import measures_of_leakage
    from cvxprivacy.leakage import MEASURES

    for typed, (kind, needed) in measures_of_leakage().items():
        name = f"{typed}:{needed[0].upper()}" if needed else typed
        yield name, MEASURES[kind].meaning
