"""The frame of every script: data, program, solve, compare, figure, in this order.

A script defines ``study``, which computes, ``report``, which yields what is to be said, and
``draw``, which returns a figure; :func:`run` gives them a command line.  What is compared with a
paper or with theory is a :class:`Claim`, so that tests read what people read.

>>> claim("R at half the variance [nats]", 0.30006, "≈ 0.3", "§6.1").agrees
True
>>> claim("information kept [bits]", 0.2382, 0.34, "Fig. 4", "0.3357 is all there is").agrees
False
>>> claim("risk of another rule [nats]", 0.31, ("≥", 0.30006), "Theorem 2").agrees
True
"""

from __future__ import annotations

import argparse
import inspect
import io
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from cvxprivacy.errors import CertificationError, InfeasibleError, InputError
from cvxprivacy.files import whole_file
from cvxprivacy.style import HOUSE
from cvxprivacy.text import aligned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Claim", "Outcome", "claim", "run"]

FORMATS = (".png", ".pdf", ".svg")
WIDTH, MARGIN = 100, 8 * " "  # of what is printed, and of reasons
_NUMBER = re.compile(r"([≈≤≥<>]?) *([-−]?(?:\d[\d,]*\.?\d*|\.\d+)) *(%?)")


@dataclass(frozen=True)
class Claim:
    """What a paper or a theorem says, beside what is found: made by :func:`claim`.

    Parameters
    ----------
    what : str
        The quantity, with its unit.
    here : str
        What is found, as it is printed.
    theirs : str
        What is said, as it is printed.
    where : str
        Number of the equation, theorem, section or table.
    agrees : bool
        Whether the two agree.
    why : str
        Where the difference comes from, or what to mind.

    Examples
    --------
    A claim keeps what it compares as text, for a table of claims:

    >>> said = claim("optimum [bits]", 0.278196674, "0.2782", "eq. 7")
    >>> said.here, said.theirs, said.where, said.agrees
    ('0.278197', '0.2782', 'eq. 7', True)
    """

    what: str
    here: str
    theirs: str
    where: str
    agrees: bool
    why: str = ""


@dataclass(frozen=True)
class Outcome:
    """What :func:`run` has done: the study, its claims, its figure.

    Attributes
    ----------
    result : object
        What the study returned.
    claims : tuple of Claim
        What the report compared, in its order.
    figure : matplotlib.figure.Figure
        What was drawn.

    Examples
    --------
    Tests run a script and look at its claims: see :func:`run`.

    >>> import matplotlib.pyplot as plt
    >>> outcome = Outcome(1.5, (claim("mean", 1.5, "1.5", "by hand"),), plt.figure())
    >>> all(each.agrees for each in outcome.claims)
    True
    """

    result: Any
    claims: tuple[Claim, ...]
    figure: Figure


def claim(
    what: str,
    here: Any,
    theirs: Any,
    where: str,
    why: str = "",
    *,
    within: float | None = None,
    agrees: bool | None = None,
) -> Claim:
    """Compare a number with a printed or computed one.

    Parameters
    ----------
    what : str
        The quantity, with its unit.
    here : float, object with ``lower`` and ``upper``, (float, float), or str
        What is found.  Both ends of an enclosure must agree; of a range, a pair, something in it.
    theirs : str, float, or (sign, float)
        A number as it is printed ("0.30", "≈ 1.2", "88 %") agrees with all that rounds to it; a
        float with all ``within`` it; after one of < ≤ ≥ > (in the text, or as a pair with a float)
        with what is on that side; other words with the same words.
    where : str
        The equation, section or table that says so.
    why : str
        The reason for a difference, or what to mind.
    within : float, optional
        By default half a unit of the last printed digit, 0 after a sign, and else 1e-6.
    agrees : bool, optional
        Said by the caller, where words are compared with numbers.

    Returns
    -------
    Claim
        Both as they are printed, and whether they agree.

    Raises
    ------
    InputError
        If the two cannot be compared and ``agrees`` is missing.

    Examples
    --------
    What is printed agrees with all that rounds to it, and a bound with all on its side:

    >>> claim("price", 1.2164, "1.22", "§6.1").agrees, claim("price", 1.2264, "1.22", "§6.1").agrees
    (True, False)
    >>> claim("share kept", 0.8821, "88 %", "Table 2").here
    '88.21 %'
    >>> claim("linked", 0.31, ("≤", 0.5), "Proposition 1").agrees
    True
    """
    pair = isinstance(here, tuple)
    lower, upper = here if pair else (getattr(here, "lower", here), getattr(here, "upper", here))
    if agrees is None and isinstance(here, str):
        agrees = here == theirs
    elif agrees is None:
        ends = [(lower, upper)] if pair else [(lower, lower), (upper, upper)]
        agrees = all(_agrees(*end, theirs, within) for end in ends)
    percent = isinstance(theirs, str) and theirs.endswith("%")
    printed = here if isinstance(here, str) else _written(lower, upper, percent)
    if isinstance(theirs, tuple):
        theirs = f"{theirs[0]} {_written(theirs[1], theirs[1])}"
    other = theirs if isinstance(theirs, str) else _written(theirs, theirs)
    return Claim(what, printed, other, where, bool(agrees), why)


def _agrees(lower: float, upper: float, theirs: Any, within: float | None) -> bool:
    """Tell whether something in [lower, upper] is what is printed, or all of it on its side."""
    sign, value, slack = "", theirs, 1e-6
    if isinstance(theirs, tuple):
        sign, value = theirs
    elif isinstance(theirs, str):
        if not (match := _NUMBER.fullmatch(theirs)):
            remedy = "pass a number, as printed or as a float, or say agrees=True or False"
            raise InputError("theirs", f"{theirs!r} is not a number", remedy, value=theirs)
        sign, digits, unit = match.groups()
        number = Decimal(digits.replace(",", "").replace("−", "-"))
        half = 0.5 * (1 + 1e-9) * 10.0 ** int(number.as_tuple().exponent)
        value, slack = (float(x) / (100 if unit else 1) for x in (number, half))
    bound = sign in ("<", "≤", "≥", ">")
    slack = (0.0 if bound else slack) if within is None else within
    return bool(lower <= upper) and {
        "<": upper < value + slack,
        "≤": upper <= value + slack,
        "≥": lower >= value - slack,
        ">": lower > value - slack,
    }.get(sign, lower - slack <= value <= upper + slack)


def _written(lower: float, upper: float, percent: bool = False) -> str:
    """Write a number, or an interval that six digits can tell from one."""
    ends = [f"{100 * x:.4g} %" if percent else f"{x:z.6g}" for x in (lower, upper)]
    return ends[0] if ends[0] == ends[1] else f"[{', '.join(ends)}]"


def _print(items: Iterable[Any]) -> None:
    """Print what is said, and claims that follow each other as one table."""
    for compared, group in groupby(items, lambda item: isinstance(item, Claim)):
        if not compared:
            texts = (
                item.to_string() if hasattr(item, "to_string") else str(item) for item in group
            )
            print("\n" + "\n".join(texts).strip("\n"))
            continue
        claims = list(group)
        rows = [(c.what, c.here, f"{c.theirs} ({c.where})", "yes" if c.agrees else "no")
                for c in claims]  # fmt: skip
        head, *lines = aligned([("", "here", "theirs", "agrees"), *rows])
        print(f"\n{head}")
        for line, each in zip(lines, claims, strict=True):
            print(line)
            if each.why:
                print(textwrap.indent(textwrap.fill(each.why, WIDTH - len(MARGIN)), MARGIN))


def run(
    study: Callable[..., Any],
    report: Callable[[Any], Iterable[Any]],
    draw: Callable[[Any], Figure],
    arguments: list[str] | None = None,
) -> Outcome:
    """Compute, say and draw; bad input ends in one line.

    Parameters
    ----------
    study : callable
        Its keywords are the options of the command line, such as ``quick=False`` and ``seed=1``;
        ``Annotated[int, "what it is"]`` documents one.
    report : callable
        Yields claims, tables (pandas), and what is printed as it is.
    draw : callable
        Returns a figure.
    arguments : list of str, optional
        By default those of the command line: ``--out`` for the picture, and the study's own.

    Returns
    -------
    Outcome
        The result, its claims and the figure, which is written too.

    Raises
    ------
    SystemExit
        In one line, for what the command line or the data have wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import matplotlib.pyplot as plt
    >>> def study(quick: bool = False, seed: int = 1):
    ...     return [k**2 for k in range(3 if quick else 10)]
    >>> def report(squares):
    ...     yield claim("sum of the squares", sum(squares), "5", "by hand")
    >>> def draw(squares):
    ...     figure, ax = plt.subplots()
    ...     ax.plot(squares)
    ...     return figure
    >>> folder = tempfile.TemporaryDirectory()
    >>> picture = Path(folder.name, "squares.svg")
    >>> outcome = run(study, report, draw, ["--quick", "--out", str(picture)])
    The frame of every script: data, program, solve, compare, figure, in this order.
    <BLANKLINE>
                        here  theirs       agrees
    sum of the squares  5     5 (by hand)  yes
    <BLANKLINE>
    picture: ...squares.svg
    >>> outcome.result, outcome.claims[0].agrees, picture.exists()
    ([0, 1, 4], True, True)
    >>> folder.cleanup()
    """
    import matplotlib.pyplot as plt

    title = (getattr(inspect.getmodule(study), "__doc__", None) or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=title)
    picture = Path("output", Path(inspect.getfile(study)).with_suffix(".png").name)
    parser.add_argument("--out", type=Path, default=picture, help="picture: .png, .pdf or .svg")
    hints = get_type_hints(study, include_extras=True)
    for name, keyword in inspect.signature(study).parameters.items():
        hint = hints.get(name, type(keyword.default))
        _add_option(parser, name, hint, keyword.default)
    options = vars(parser.parse_args(arguments))
    out = options.pop("out")
    if out.suffix.lower() not in FORMATS or out.is_dir():
        parser.error(f"--out: {out} is no file {', '.join(FORMATS)}; name such a file")
    if options.get("seed", 0) < 0:
        parser.error(f"--seed: {options['seed']} is negative; pass a whole number ≥ 0")
    if isinstance(sys.stdout, io.TextIOWrapper):  # a console may lack the hat of X̂
        sys.stdout.reconfigure(errors="replace")
    try:
        result = study(**options)
        items = list(report(result))
        with plt.rc_context(HOUSE):
            figure = draw(result)
            plt.close(figure)
            out.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(out, binary=True) as file:
                figure.savefig(file, format=out.suffix[1:].lower())
        print(title)
        _print(items)
        print(f"\npicture: {out}")
    except BrokenPipeError:  # who reads has seen enough
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    except (InputError, InfeasibleError, CertificationError, OSError) as error:
        raise SystemExit(str(error)) from None
    return Outcome(result, tuple(item for item in items if isinstance(item, Claim)), figure)


def _add_option(parser: argparse.ArgumentParser, name: str, hint: Any, default: Any) -> None:
    """Make an option of a keyword: of ``bool`` a flag, of ``T`` and ``T | None`` a value."""
    description = "smaller and faster" if name == "quick" else None
    if get_origin(hint) is Annotated:
        hint, description = get_args(hint)
    kind = next(iter(get_args(hint)), hint)
    how: dict[str, Any] = {"action": "store_true"} if kind is bool else {"type": kind}
    description = description and description.replace("%", "%%")
    parser.add_argument(f"--{name.replace('_', '-')}", default=default, help=description, **how)
