"""What ``plan`` proposes, and why: of columns by names and counts, of a budget by a curve."""

from __future__ import annotations

import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.tables.engines import as_narwhals, collect, is_missing, python_values
from cvxprivacy.tables.periods import are_dates

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.frontiers.frontier import Frontier
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.results.solution import Solution

__all__ = ["ColumnFacts", "Row", "confidential", "curve_of", "facts_of", "knee_of", "knowable",
           "row_of"]  # fmt: skip

MOST_KEY = 3  # columns that are proposed by their names
FEWEST = 2  # columns that are proposed by their counts alone
LOOKED_AT = 1_000  # records of a text that may be dates
# words of names of columns, in English, German, French and Spanish
CONFIDENTIAL = """
    income salary salaries wage wages earning revenue profit debt wealth diagnosis disease
    illness ill health religion vote crime einkommen gehalt lohn verdienst umsatz gewinn
    schulden vermögen diagnose krank krankheit erkrankung gesundheit konfession straftat revenu
    salaire rémunération bénéfice dette patrimoine diagnostic maladie santé délit ingresos
    salario sueldo renta beneficio deuda patrimonio diagnóstico enfermedad salud voto delito
"""
KNOWABLE = """
    age birth born sex gender race ethnic nationality citizenship country state region county
    province district city town zip municipality postcode postal marital education school
    occupation job profession employer sector industry household children year month alter
    altersgruppe altersklasse geburt geboren gebdat gebjahr jahrgang geschlecht anrede herkunft
    nationalität staatsangehörigkeit migrationshintergrund land bundesland kanton kreis
    landkreis bezirk gemeinde stadt ort wohnort plz postleitzahl familienstand zivilstand
    bildung schule schulabschluss beruf berufsgruppe tätigkeit arbeitgeber branche
    wirtschaftszweig haushalt kinder jahr monat naissance sexe genre ethnie nationalité
    citoyenneté pays département commune canton ville civil matrimonial diplôme études école
    métier emploi employeur secteur ménage enfants année mois edad nacimiento sexo género raza
    etnia nacionalidad ciudadanía país estado provincia municipio ciudad distrito educación
    estudios escuela escolaridad ocupación profesión empleo oficio hogar hijos año mes
"""
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


@dataclass(frozen=True)
class ColumnFacts:
    """A column, counted in all records; ``values`` without the missing one, 0 of what has none."""

    name: str
    numbers: bool
    values: int
    missing: int
    records: int
    dates: bool = False

    @property
    def ordered(self) -> bool:
        """Whether it can be cut into intervals."""
        return self.numbers or self.dates

    @property
    def shared(self) -> bool:
        """Whether it has two values or more, and records share values: two of a text on average."""
        return self.values > 1 and (self.ordered or 2 * self.values <= self.records)

    @property
    def kind(self) -> str:
        """What it holds, in a word."""
        kinds = {"numbers": self.numbers, "dates": self.dates, "text": self.values > 0}
        return next((kind for kind, is_so in kinds.items() if is_so), "nothing to compare")


def facts_of(frame: Any) -> list[ColumnFacts]:
    """Return each column of a table, counted by its engine."""
    lazy = as_narwhals(frame).lazy()
    types = lazy.collect_schema()
    wanted = [nw.len().alias("records")]
    for i, name in enumerate(types.names()):
        if not types[name].is_nested():
            wanted += [nw.col(name).n_unique().alias(f"values {i}")]
            wanted += [is_missing(lazy, name).sum().alias(f"missing {i}")]
    counted = collect(lambda: lazy.select(*wanted)).rows(named=True)[0]
    columns = []
    for i, name in enumerate(types.names()):
        values, missing = (int(counted.get(f"{what} {i}", 0)) for what in ("values", "missing"))
        values -= missing > 0
        dates = types[name] in (nw.Date, nw.Datetime)
        if types[name] == nw.String and values:
            first = collect(lambda name=name: lazy.select(name).head(LOOKED_AT))  # type: ignore[misc]
            dates = are_dates(python_values(first[name]))
        of_numbers, records = types[name].is_numeric(), int(counted["records"])
        columns.append(ColumnFacts(name, of_numbers, values, missing, records, dates))
    return columns


# ---- columns -----------------------------------------------------------------------------


def _word_in(name: str, words: str) -> str:
    """Return the word that a column's name contains: short ones only by themselves."""
    parts = re.split(r"[^a-z]+", _bare(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)))
    for word in words.split():
        forms = {_bare(word), _bare(word.translate(_UMLAUTS))}
        if any(p == w or (len(w) > 5 and w in p) for w in forms for p in parts):
            return word
    return ""


def _bare(text: str) -> str:
    """Return a text in small letters without accents, as columns are often named."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def confidential(columns: Sequence[ColumnFacts]) -> tuple[str, str]:
    """Return the column that is most likely confidential, and why.

    Raises
    ------
    InputError
        If nothing in the table could be protected.
    """
    possible, remedy = [column for column in columns if column.shared], "name another table"
    if len(columns) < 2:
        raise InputError("TABLE", f"{len(columns)} column", remedy)
    if not columns[0].records:
        raise InputError("TABLE", "no records", remedy)
    if not possible:
        raise InputError("TABLE", "every column is constant, or names its records", remedy)
    for column in possible:
        if word := _word_in(column.name, CONFIDENTIAL):
            return column.name, f"its name says {word!r}"
    return possible[-1].name, "no name says it; by custom the last column is what was asked about"


def knowable(
    possible: Sequence[ColumnFacts], information: Mapping[str, float]
) -> tuple[dict[str, str], str]:
    """Return the columns that others are most likely to know with the reason for each, and why.

    ``information`` is what each column tells of the confidential one.
    """
    named: dict[str, str] = {}
    for column in sorted(possible, key=lambda c: -information[c.name]):
        word = _word_in(column.name, KNOWABLE)
        reason = f"its name says {word!r}: others may know it"
        if word and reason not in named.values():  # one of several that say the same
            named[column.name] = reason
    if named:
        why = "others may know them, by their names, and of these they tell most"
        return dict([*named.items()][:MOST_KEY]), why
    few = sorted(possible, key=lambda c: c.values)[:FEWEST]
    return (
        {c.name: f"one of the columns of fewest values, {c.values:,}" for c in few},
        "no name says that others know it; these columns have the fewest values",
    )


# ---- the curve ---------------------------------------------------------------------------

COARSE = 0.02  # of the curve's height: the band within which its reach is sought
LEFT = 0.05  # of its height, under which little is left to be gained
STEPS = 7  # between the ends, and as many around the bend: less, as their numbers are round
PLACES = 2_000  # at which an outline is looked at
NO_HEIGHT = 1e-9  # bits


@dataclass(frozen=True)
class Row:
    """A budget, the enclosure of the least leakage there, and what its release keeps.

    Attributes
    ----------
    kept : float
        Share of the records whose key is released as it was, on average over draws.
    """

    budget: float
    lower: float
    upper: float
    kept: float


def curve_of(
    problem: ChannelProblem, source: DiscreteSource, progress: Callable[[str], object] | None
) -> list[Row]:
    """Return the certified curve of a problem over its budget, solved at round numbers.

    Raises
    ------
    KeyboardInterrupt
        If it was interrupted: half a curve has another bend.
    """
    height = source.information(units=problem.units)
    outline = _solved(problem, progress, tol=max(COARSE * height, NO_HEIGHT))
    first, last = map(float, outline.solved_range or (0.0, 0.0))
    places = np.linspace(first, last, PLACES)
    heights = outline.inner(places)
    high, low = heights[[0, -1]]
    if high - low <= NO_HEIGHT:
        nothing = f"no budget lowers what it tells ({', '.join(source.names[:2])})"
        raise InputError("--key", nothing, "name columns that tell more")
    end = (heights <= low + LEFT * (high - low)).argmax()
    reach = float(places[end])
    lines = np.interp(places[: end + 1], (first, reach), (high, heights[end]))
    knee = float(places[(lines - heights[: end + 1]).argmax()])
    budgets = {*round_numbers(first, min(2 * knee, reach)), *round_numbers(first, reach)}
    points = _solved(problem, progress, points=sorted(budgets)).points
    return [
        row_of(float(point.x), point.solution, source)
        for point in points
        if point.solution is not None and point.solution.channel is not None
    ]


def round_numbers(first: float, last: float) -> list[float]:
    """Return the first number, rounded up, and multiples of 1, 2 or 5 · 10ᵏ to beyond the last.

    Examples
    --------
    >>> round_numbers(0.0, 0.031)
    [0.0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035]
    >>> round_numbers(0.00123456, 0.004)
    [0.001235, 0.0015, 0.002, 0.0025, 0.003, 0.0035, 0.004]
    """
    wanted = (last - first) / STEPS
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= wanted)
    digit = 10.0 ** (math.floor(math.log10(first)) - 3) if first > 0 else 1.0
    start = digit * math.ceil(first / digit)
    multiples = range(math.floor(start / step) + 1, math.ceil(last / step) + 1)
    return sorted({float(f"{number:.12g}") for number in (start, *(step * k for k in multiples))})


def _solved(problem: Any, progress: Any, **how: Any) -> Frontier:
    from cvxprivacy import frontier

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        curve = frontier(problem, "budget", progress=progress or False, **how)
    if any(str(warning.message).startswith("interrupted") for warning in caught):
        raise KeyboardInterrupt
    return curve


def row_of(budget: float, solution: Solution, source: DiscreteSource) -> Row:
    """Return what is proved at a budget, and what its release keeps."""
    channel = solution.channel
    assert channel is not None
    places = {letter: i for i, letter in enumerate(channel.outputs)}
    law = dict(zip(source.x, source.p_x, strict=True))
    kept = sum(law[x] * channel.matrix[i, places[x]] for i, x in enumerate(channel.inputs))
    return Row(budget, solution.lower, solution.upper, float(kept))


def knee_of(rows: Sequence[Row]) -> tuple[Row, float]:
    """Return the row that is farthest below the straight line between the ends, and by how much.

    Examples
    --------
    >>> rows = [Row(0.0, 1.0, 1.0, 1.0), Row(0.1, 0.2, 0.21, 0.9), Row(0.2, 0.1, 0.1, 0.8)]
    >>> row, depth = knee_of(rows)
    >>> row.budget, round(depth, 3)
    (0.1, 0.34)
    """
    first, last = rows[0], rows[-1]
    slope = (last.lower - first.lower) / (last.budget - first.budget)
    depths = {row: first.lower + slope * (row.budget - first.budget) - row.upper for row in rows}
    knee = max(rows[1:-1] or rows[-1:], key=lambda row: depths[row])
    return knee, max(depths[knee], 0.0)
