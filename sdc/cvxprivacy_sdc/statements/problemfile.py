"""Problems written down: a TOML file that says what to minimise, of what, under which rules.

    formulation = "PrivacyDistortion"  # a discrete formulation
    budget = 5.0                       # its own arguments: budget or price, encoder, units
    units = "bits"

    [source]
    counts = [[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]]
    w = ["none", "mild", "severe"]
    x = [25, 40, 55, 70]
    names = ["illness", "age"]

    [distortion]
    kind = "absolute_error"

    [[criteria]]                       # none, or as many as you like
    kind = "KeepProbability"
    p = 0.3

    [solve]
    accuracy = "high"

    [output]
    certificate = "proof.json"
    channel = "channel.json"

Keys are the arguments' own names; what a class or a function says of its arguments holds here.  The
manual's page on files lists the sections: sources of ``counts``, ``pmf``, ``identical``,
``gaussian`` or ``table``, further ``[[laws]]``, distortions of a ``kind``, a ``matrix`` or
``attributes``, and channels of earlier releases, ``after``.  Files are relative to the folder of
the problem file, those of ``[output]`` to the current directory.

A letter that is a key of a TOML table is a string there (``values = { 25 = 1.0 }``); a tuple is
an array.  Errors name the file, the line and the key, entries counted from 0: ``criteria[0].p``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from cvxprivacy import criteria, leakage
from cvxprivacy.errors import InputError
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.equivocation import RateDistortionEquivocation
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.formulations.most_useful import MostUsefulRelease
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion
from cvxprivacy.leakage.base import measure_of
from cvxprivacy.model import distortion
from cvxprivacy.model.attributes import per_attribute
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.release.channel import Channel
from cvxprivacy.results.solution import Solution
from cvxprivacy_sdc.statements.recodings import placed
from cvxprivacy_sdc.statements.statement import refuse_intractable
from cvxprivacy_sdc.statements.toml import Keys, TomlFile, guarded

__all__ = ["ProblemFile", "read"]

FORMULATIONS = (
    *(MinimumDistortion, MostUsefulRelease, PrivacyDistortion, RateDistortionEquivocation),
)
_SECTIONS = {"source": "Mapping", "distortion": "Mapping", "criteria": "Sequence[Mapping]"}
_SECTIONS |= {
    "leakage": "str | Mapping",
    "utility": "str | Mapping",
    "laws": "Sequence[Mapping]",
    "after": "str | Sequence[str]",
}
_OUTPUTS = ("certificate", "channel")
_SOURCES: dict[str, Callable[..., Any]] = {
    "counts": DiscreteSource.from_counts,
    "pmf": DiscreteSource,
    "identical": DiscreteSource.identical,
    "gaussian": DiscreteSource.gaussian,
}


@dataclass(frozen=True)
class ProblemFile:
    """What a problem file says: the problem, how to solve it, and what to write where.

    ``located`` gives an error of a setting or of ``output.…`` the line where it stands.
    """

    problem: ChannelProblem
    solve: dict[str, Any]
    output: dict[str, Path]
    located: Callable[[InputError], InputError] = field(default=lambda e: e, repr=False)

    def solution(self, **more: Any) -> Solution:
        """Return ``problem.solve(**solve, **more)``; an InputError names the setting's line."""
        try:
            return self.problem.solve(**self.solve, **more)
        except InputError as error:
            raise self.located(error) from error.__cause__


def read(path: str | os.PathLike[str], *, table: Callable[..., Any] | None = None) -> ProblemFile:
    """Read a problem file, written as this module says; nothing is solved.

    Parameters
    ----------
    path : path
    table : callable, optional
        ``table(path, **rest_of_the_section)`` returns the source of a [source] with ``table``.

    Raises
    ------
    InputError
        For whatever makes no problem, with the file, the line and the key.
    """
    text, remedy = "", "correct the TOML as https://toml.io says"
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        data = tomllib.loads(text)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise InputError(str(path), problem, "name a problem file in TOML") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problem = f"byte {error.object[error.start]:#04x} is not UTF-8"
        raise InputError(f"{path}, line {line}", problem, "save the file as UTF-8") from None
    except RecursionError:
        raise InputError(str(path), "arrays nested too deeply", remedy) from None
    except ValueError as error:  # TOMLDecodeError is one
        problem, _, place = str(error).removesuffix(")").partition(" (at ")
        place = place.replace("end of document", f"line {text.count(chr(10)) + 1}")
        raise InputError(f"{path}, {place}" if place else str(path), problem, remedy) from None
    return _Reader(Path(path), text).read(data, table)


class _Reader(TomlFile):
    """A problem file, read section by section."""

    def read(self, data: Any, table: Callable[..., Any] | None) -> ProblemFile:
        """Return what the file says, section by section."""
        classes = {kind.__name__: kind for kind in FORMULATIONS}
        formulation = self.chosen(("formulation",), data.get("formulation"), classes)
        sections = {
            name: p.replace(annotation=_SECTIONS.get(name, p.annotation))
            for name, p in signature(formulation).parameters.items()
        }
        sections |= _optional("Any", "formulation", "solve", "output")
        values = self.arguments((), data, sections)
        settings, output = values.pop("solve", {}), values.pop("output", {})
        del values["formulation"]
        values["source"] = source = self.source(("source",), values["source"], table)
        self.letters = {str(letter): letter for letter in source.x}
        # nothing is asked of the law
        self.free = formulation is MinimumDistortion and not values.get("criteria")
        if "distortion" in values:
            values["distortion"] = measure = self.distortion(values["distortion"], source)
            self.letters |= {str(letter): letter for letter in measure.outputs}
        if "criteria" in values:
            values["criteria"] = [self.criterion(i, c) for i, c in enumerate(values["criteria"])]
        if "laws" in values:
            values["laws"] = self.laws(values["laws"], table)
        if "after" in values:
            values["after"] = self.channels(values["after"])
        for name in ("leakage", "utility"):
            if name in values:
                values[name] = self.leakage((name,), values[name])
        problem = self.problem(formulation, values)
        options = {k: p for k, p in signature(problem.solve).parameters.items()
                   if k not in ("progress", "settings")}  # fmt: skip
        settings = self.arguments(("solve",), settings, options)
        paths = self.arguments(("output",), output, _optional("str", *_OUTPUTS))

        def located(error: InputError) -> InputError:
            section, dot, name = error.argument.partition(".")
            return self.located((section, name) if dot else ("solve", section), error)

        return ProblemFile(problem, settings, {k: Path(p) for k, p in paths.items()}, located)

    def channels(self, paths: str | Sequence[str]) -> list[Any]:
        """Return the channels of earlier releases, in files beside the problem's."""
        read = []
        for i, path in enumerate([paths] if isinstance(paths, str) else paths):
            try:
                read.append(guarded(Channel.load, self.path.parent / path))
            except InputError as error:
                raise self.located(("after", i), error) from error.__cause__
        return read

    def laws(self, sections: Any, table: Callable[..., Any] | None) -> dict[str, Any]:
        """Return the further laws by name."""
        sources: dict[str, Any] = {}
        for i, section in enumerate(sections):
            keys: Keys = ("laws", i)
            name = self.typed((*keys, "name"), section.get("name", f"law {i + 1}"), "str")
            if name in sources:
                raise self.error(keys, f"two laws are called {name!r}", "write another name")
            body = {key: value for key, value in section.items() if key != "name"}
            sources[name] = self.source(keys, body, table)
        return sources

    def source(self, keys: Keys, section: dict[str, Any], table: Callable[..., Any] | None) -> Any:
        """Return the source that a section states, in whichever form."""
        form = self.form(keys, section, *_SOURCES, "table")
        if form == "gaussian":
            self.arguments(keys, section, _optional("Mapping", form))
            return self.call(_SOURCES[form], (*keys, form), section[form])
        if form != "table":
            return self.call(_SOURCES[form], keys, section, form)
        if table is None:
            remedy = "write counts, or pass table= to read"
            raise self.error((*keys, form), "nothing is there to read a table with", remedy)
        folder = self.path.parent
        section = placed(section, folder)
        opened = wraps(table)(lambda name, **options: table(folder / name, **options))
        return self.call(opened, keys, section, form)

    def distortion(self, section: dict[str, Any], source: DiscreteSource) -> Any:
        """Return the measure that a section states, of the source's letters."""
        section = dict(section)
        suppress = {k: section.pop(k) for k in ("suppress",) if k in section}
        measure = self.measure(section, source)
        if not suppress:
            return measure
        columns = () if source.schema is None else source.schema.key

        def suppressed(suppress: float | dict[str, float]) -> Any:
            return measure.with_suppression(suppress, columns=columns)

        self.typed(("distortion", "suppress"), suppress["suppress"], "float | Mapping[str, float]")
        try:
            return guarded(suppressed, suppress["suppress"])
        except InputError as error:
            raise self.located(("distortion", "suppress"), error) from error.__cause__

    def measure(self, section: dict[str, Any], source: DiscreteSource) -> Any:
        """Return the measure of a section before letters are suppressed."""
        keys = ("distortion",)
        section = {k: v for k, v in section.items() if (k, v) != ("kind", "per_attribute")}
        form = self.form(keys, section, "kind", "matrix", "attributes")
        if form != "attributes":
            refuse_intractable(source, "source", free=self.free)
        if form == "attributes":
            return self.call(per_attribute, keys, section, form, source)
        if form == "matrix":
            return self.call(distortion.Distortion, keys, section, form)
        measures = {n: getattr(distortion, n) for n in distortion.__all__ if n.islower()}
        measure = self.chosen((*keys, form), section.pop(form), measures)
        letters = {"letters", "values"} & {*signature(measure).parameters}
        return self.call(partial(measure, **dict.fromkeys(letters, source.x)), keys, section)

    def criterion(self, i: int, table: dict[str, Any]) -> Any:
        """Return the criterion that the i-th table of ``criteria`` states."""
        kinds = {name: getattr(criteria, name) for name in criteria.__all__ if name != "Criterion"}
        kind = self.chosen(("criteria", i, "kind"), table.get("kind"), kinds)
        arguments = {k: v for k, v in table.items() if k != "kind"}
        if "leakage" in arguments and "leakage" in signature(kind).parameters:
            arguments["leakage"] = self.leakage(("criteria", i, "leakage"), arguments["leakage"])
        return self.call(kind, ("criteria", i), arguments)

    def leakage(self, keys: Keys, table: Any) -> Any:
        """Return the measure of leakage that a table states, or a text names."""
        self.typed(keys, table, "str | Mapping")
        if isinstance(table, str):
            try:
                return measure_of(table, "")
            except InputError as error:
                raise self.located(keys, error) from error.__cause__
        kind = self.chosen((*keys, "kind"), table.get("kind"), leakage.MEASURES)
        return self.call(kind, keys, {k: v for k, v in table.items() if k != "kind"})

    def problem(self, formulation: Any, values: dict[str, Any]) -> ChannelProblem:
        """Return the problem, or say which criterion it cannot be made with."""
        rules = values.get("criteria", [])

        def build(count: int) -> Any:
            problem = formulation(**{**values, "criteria": rules[:count]} if rules else values)
            _ = problem.program  # where floors meet forbidden moves
            return problem

        try:
            return guarded(build, len(rules))
        except InputError as error:
            keys: Keys = (error.argument,) if error.argument else ()
            if rules and error.argument not in values:  # the first criterion too many
                count = 1
                with suppress(InputError):
                    while guarded(build, count):
                        count += 1
                keys = ("criteria", count - 1, *keys)
            raise self.located(keys, error) from error.__cause__


def _optional(annotation: str, *names: str) -> dict[str, Parameter]:
    kind: Any = Parameter.KEYWORD_ONLY
    return {n: Parameter(n, kind, default=None, annotation=annotation) for n in names}
