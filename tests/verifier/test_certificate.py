"""The proof file: written whole, read by anyone, and believed in nothing that it claims."""

from __future__ import annotations

import copy
import json
import math
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy import files
from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.programs.channel import ChannelProgram, View
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.side_conditions import Auxiliary
from cvxprivacy.solvers.driver import solve
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.__main__ import main
from cvxprivacy_verifier.balls import UnprovableError, ceil, floor
from tests.claims import claimed
from tests.forgeries import falsehood, plainly
from tests.lengths import some_at_length
from tests.primals import listed
from tests.verifier.documents import Document, get, leaves, put, run, signed

INF = math.inf


# ---- three documents ---------------------------------------------------------------------


def plain() -> Certificate:
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1, units="nats")
    return problem.solve().certificate


def rich() -> Certificate:
    """Return a certificate with every kind of field in it."""
    rng = np.random.default_rng(1)
    law = rng.integers(1, 9, (2, 3)).astype(float)
    w, x = np.tile([[0], [1]], (1, 3)), np.tile([0, 1, 2], (2, 1))
    d = np.array([[0.0, 0.5, 1.0], [0.5, 0.0, 0.5], [1.0, 0.5, 0.0]])
    layers = np.stack([d, d + 0.25])
    partial = np.where(x == 2, -1, w)
    program = ChannelProgram(
        law=law,
        outputs=3,
        views={"W": View(w), "X": View(x), "P": View(partial, w)},
        objective=Expression(
            "sum",
            {"W": 1.0, "P": np.array([0.5, 0.25, 0.0])},
            cost=layers,
            cost_radius=1e-14,
            constant=0.125,
            constant_radius=1e-15,
        ),
        constraints={
            "budget": Constraint(Expression("distortion", cost=d), "<=", 0.75, radius=1e-15),
            "leak": Expression("risk", {"W": 1.0}, constant=0.5) <= Fraction(4, 3),
            "t": Constraint(
                Expression("t", {"X": 1.0}, cost=np.full((3, 3), -1.0)).each(),
                "<=",
                (0.0, 0.125, 0.0),
            ),
            "mean": Expression("mean", cost=np.tile([0.0, 1.0, 2.0], (3, 1))) == 1,
        },
        lower=np.full((3, 3), 1 / 64),
        upper=np.array([[1.0, 1.0, 0.875], [1.0, 1.0, 1.0], [0.875, 1.0, 1.0]]),
        auxiliaries={
            "ldp": Auxiliary("ratio", 9.0, 1e-15),
            "maximal": Auxiliary("maximum", 2.0, 1e-15),
        },
        terms={
            "risk": Expression("risk", {"W": 1.0}),
            "distortion": Expression("distortion", cost=d),
        },
    )
    return solve(program).certificate


def contradiction() -> Certificate:
    rng = np.random.default_rng(21)
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(6)).reshape(2, 3))
    d = 1 - np.eye(3)
    problem = cpv.PrivacyDistortion(source, d, budget=0.1, criteria=[cpv.LeakageCap(1e-3)])
    return problem.solve(certify=False).certificate


BUILD = {"plain": plain, "rich": rich, "infeasible": contradiction}
EVERYWHERE = [  # one change in three, or each
    *(("plain", 3), ("infeasible", 3)),
    *(pytest.param(name, 1, marks=pytest.mark.long) for name in ("plain", "rich", "infeasible")),
]


@pytest.fixture(scope="module")
def certificates() -> dict[str, Certificate]:
    results = {name: build() for name, build in BUILD.items()}
    statuses = ["certified", "certified", "infeasible"]
    assert [c.status for c in results.values()] == statuses
    return results


@pytest.fixture(scope="module")
def documents(certificates: dict[str, Certificate]) -> dict[str, Document]:
    results = {k: json.loads(json.dumps(c.document())) for k, c in certificates.items()}
    for document in results.values():
        assert verify.disagreements(document) == []
    return results


# ---- the file ----------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_file_is_its_owners(
    umask: int, certificates: dict[str, Certificate], tmp_path: Path
) -> None:
    before = os.umask(umask)
    try:
        path = certificates["plain"].to_json(tmp_path / "proof.json")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o644)
        certificates["plain"].to_json(path)  # nor does an older, open one leave it so
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("place", ["write", "replace"])
@pytest.mark.parametrize("older", [None, "an older proof"])
def test_the_file_is_written_whole_or_not_at_all(
    place: str,
    older: str | None,
    certificates: dict[str, Certificate],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = tmp_path / "proof.json"
    if older is not None:
        target.write_text(older)

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("no space left on device")

    if place == "replace":
        monkeypatch.setattr(Path, "replace", fail)
    else:
        real = files.WholeFiles.open

        def full(*args: Any, **options: Any) -> Any:
            real(*args, **options).write("{")
            return Path(os.devnull).open(encoding="utf-8")

        monkeypatch.setattr(files.WholeFiles, "open", full)
    with pytest.raises(OSError, match=r"no space|not writable"):
        certificates["plain"].to_json(target)
    monkeypatch.undo()
    left = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert left == ({} if older is None else {"proof.json": older})


@pytest.mark.parametrize("name", BUILD)
def test_the_file_says_what_the_certificate_says(
    name: str, certificates: dict[str, Certificate], tmp_path: Path
) -> None:
    certificate = certificates[name]
    path = certificate.to_json(str(tmp_path / "proof.json"))
    assert path == tmp_path / "proof.json"
    text = path.read_text(encoding="utf-8")
    document = json.loads(text, parse_constant=lambda s: pytest.fail(f"{s} is not JSON"))
    assert document == certificate.document()
    assert document["sha256"] == verify.digest(document)
    assert verify.disagreements(document) == []
    assert certificate.verify()
    claim = document["claim"]
    assert (claim["status"], float(claim["lower"]), float(claim["upper"])) == (
        certificate.status,
        certificate.lower,
        certificate.upper,
    )


def test_a_certificate_that_overstates_does_not_verify(
    certificates: dict[str, Certificate],
) -> None:
    honest = certificates["plain"]
    value = (honest.program, honest.accuracy, honest.status)
    others = (honest.primal, honest.dual, honest.terms, honest.raw)
    assert Certificate(*value, honest.lower, honest.upper, *others).verify()
    step = math.nextafter(honest.lower, INF), math.nextafter(honest.upper, -INF)
    for lower, upper in ((step[0], honest.upper), (honest.lower, step[1])):
        with pytest.raises(ValueError, match="not verified"):
            Certificate(*value, lower, upper, *others).verify()


# ---- a fresh process ---------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILD)
def test_a_fresh_process_verifies(
    name: str, certificates: dict[str, Certificate], tmp_path: Path
) -> None:
    path = certificates[name].to_json(tmp_path / "proof.json")
    done = run(str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"verified, {certificates[name].status}" in done.stdout


@pytest.mark.parametrize("kind", ["channel", "covariance"])
def test_the_process_needs_the_standard_library_and_flint_only(
    kind: str, certificates: dict[str, Certificate], tmp_path: Path
) -> None:
    gaussian = cpv.ReverseWaterFilling([1.0, 2.0], 0.5).solve().certificate
    certificate = {"channel": certificates["rich"], "covariance": gaussian}[kind]
    path = certificate.to_json(tmp_path / "proof.json")
    program = (
        "import runpy, sys\n"
        f"sys.argv = ['verify', {str(path)!r}]\n"
        "try:\n"
        "    runpy.run_module('cvxprivacy_verifier', run_name='__main__')\n"
        "except SystemExit as end:\n"
        "    print(end.code, *sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0"
    assert {"flint", "cvxprivacy_verifier"} <= set(modules)
    assert "cvxprivacy" not in modules
    assert not {"numpy", "scipy", "cvxpy", "matplotlib", "clarabel", "scs"} & set(modules)


def test_exit_codes(documents: dict[str, Document], tmp_path: Path) -> None:
    good, forged, broken = (tmp_path / f"{name}.json" for name in ("good", "forged", "broken"))
    good.write_text(json.dumps(documents["plain"]))
    wrong = copy.deepcopy(documents["plain"])
    wrong["claim"]["lower"] += 1e-3
    forged.write_text(json.dumps(signed(wrong)))
    broken.write_text("{")
    done = run(str(forged))
    assert done.returncode == 1
    assert "NOT verified" in done.stdout
    assert "is claimed" in done.stdout
    none = tmp_path / "none.json"
    for paths, code in (
        ([good], 0), ([broken], 2), ([none], 2), ([tmp_path], 2), ([], 2), (["--help"], 0),
        ([good, good], 0), ([good, forged], 1), ([forged, good], 1), ([forged, broken], 2),
    ):  # fmt: skip
        assert main([str(path) for path in paths]) == code, paths


def test_who_reads_may_have_seen_enough(documents: dict[str, Document], tmp_path: Path) -> None:
    """Its exit code is still of all files, and nothing is said of the pipe."""
    good, forged = tmp_path / "good.json", tmp_path / "forged.json"
    good.write_text(json.dumps(documents["plain"]))
    forged.write_text(json.dumps({**documents["plain"], "sha256": "0"}))
    for paths, code in (([good, good], 0), ([good, forged], 1)):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [sys.executable, "-m", "cvxprivacy_verifier", *map(str, paths)],
            stdout=write, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        os.close(write)
        assert (done.returncode, done.stderr) == (code, "")


UNREADABLE: dict[str, bytes] = {
    "empty": b"",
    "truncated": b'{"schema": "cvxprivacy/certificate/1", "program": {',
    "binary": bytes(range(256)),
    "list": b"[1, 2]",
    "number": b"1",
    "null": b"null",
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "long integer": b'{"a": ' + b"9" * 100_000 + b"}",
}


@pytest.mark.long
@pytest.mark.parametrize("kind", UNREADABLE)
def test_no_traceback_for_what_is_no_document(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.write_bytes(UNREADABLE[kind])
    done = run(str(path))
    assert done.returncode == 2
    assert "unreadable" in done.stderr
    assert "Traceback" not in done.stderr


ROW = ("program", "rows", "*")
# Beside what is refused in words of its own: see test_verdicts.
MALFORMED: dict[str, Callable[[Document], None]] = {
    "no schema": lambda d: d.pop("schema"),
    "program list": put("program", value=[]),
    "program null": put("program", value=None),
    "surrogate": put("software", value="\ud800"),
    "law empty": put("program", "law", value=[]),
    "law of no letters": put("program", "law", value=[[], []]),
    "law nan": put("program", "law", 0, 0, value=math.nan),
    "law huge": put("program", "law", 0, 0, value=10**400),
    "outputs infinite": put("program", "outputs", value=INF),
    "outputs nan": put("program", "outputs", value=math.nan),
    "outputs huge": put("program", "outputs", value=10**16),
    "outputs larger": put("program", "outputs", value=10**30),
    "label nan": put("program", "views", "W", "labels", 1, 1, value=math.nan),
    "label float": put("program", "views", "W", "labels", 0, 0, value=0.5),
    "label string": put("program", "views", "W", "labels", 0, 0, value="0"),
    "label null": put("program", "views", "W", "labels", 0, 0, value=None),
    "labels empty": put("program", "views", "W", "labels", value=[]),
    "no views": put("program", "views", value={}),
    "weight nan": put("program", "objective", "weights", "W", value=math.nan),
    "weight infinite": put("program", "objective", "weights", "W", value=INF),
    "weight huge": put("program", "objective", "weights", "W", value=10**400),
    "constant huge": put("program", "objective", "constant", value=[10**400, 0.0]),
    "constant short": put("program", "objective", "constant", value=[0.0]),
    "bound zero division": put(*ROW, "bound", value="1/0"),
    "bound infinite": put(*ROW, "bound", value="inf"),
    "bound null": put(*ROW, "bound", value=None),
    "cost huge": put(*ROW, "term", "cost", 0, 0, value=10**400),
    "cost string": put(*ROW, "term", "cost", 0, 0, value="0.5"),
    "cost ragged": put(*ROW, "term", "cost", 0, value=[0.0]),
    "cost empty": put(*ROW, "term", "cost", value=[]),
    "cost radius infinite": put(*ROW, "term", "cost_radius", value=INF),
    "cost radius huge": put(*ROW, "term", "cost_radius", value=10**400),
    "lower infinite": put("program", "lower", value=[[0.0, 0.0], [0.0, INF]]),
    "lower nan": put("program", "lower", value=[[0.0, 0.0], [0.0, math.nan]]),
    "auxiliary bound": put(
        "program", "auxiliaries", value={"a": {"kind": "ratio", "bound": [math.nan, 0]}}
    ),
    "output infinite": put("primal", "outputs", 0, 0, value=INF),
    "output null": put("primal", "outputs", 0, 0, value=None),
    "output true": put("primal", "outputs", 0, 0, value=True),
    "outputs empty": put("primal", "outputs", value=[]),
    "numerator infinite": put("primal", "numerators", 0, 0, value=INF),
    "numerator nan": put("primal", "numerators", 0, 0, value=math.nan),
    "numerator null": put("primal", "numerators", 0, 0, value=None),
    "denominator infinite": put("primal", "denominator", value=INF),
    "numerators empty": put("primal", "numerators", value=[]),
    "multiplier huge": put("dual", "multipliers", "budget", value=10**400),
    "score huge": put("dual", "scores", "W", 0, 0, value=10**400),
    "claim huge": put("claim", "upper", value=-(10**400)),
    "claim list": put("claim", "lower", value=[]),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_what_is_malformed_is_refused(kind: str, documents: dict[str, Document]) -> None:
    document = copy.deepcopy(documents["plain"])
    MALFORMED[kind](document)
    if kind != "surrogate":  # such a text has no digest
        document = signed(document)
    assert verify.disagreements(document)


def test_no_traceback_for_what_is_malformed(documents: dict[str, Document], tmp_path: Path) -> None:
    paths = []
    for number, change in enumerate(MALFORMED.values()):
        document = copy.deepcopy(documents["plain"])
        change(document)
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(document))
    done = run(*map(str, paths))
    assert "Traceback" not in done.stderr, done.stderr[-300:]
    assert done.returncode == 2  # NaN and Infinity are no JSON
    unreadable = done.stderr.count("is no number of JSON")
    assert unreadable > 10
    assert done.stdout.count("NOT verified") + unreadable == len(MALFORMED)


@pytest.mark.skipif(os.name != "posix", reason="limits of a process are POSIX's")
@pytest.mark.parametrize(
    "place", [("program", "views", "W", "labels", 0, 0), ("program", "outputs")], ids=lambda p: p[1]
)
def test_a_small_file_asks_for_no_large_memory(
    place: tuple[Any, ...], documents: dict[str, Document], tmp_path: Path
) -> None:
    document = copy.deepcopy(documents["plain"])
    put(*place, value=10**9)(document)
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(signed(document)))
    limited = 'ulimit -v 2097152; ulimit -t 20; exec "$@"'  # after the fork of a large process
    command = ["sh", "-c", limited, "sh", sys.executable, "-m", "cvxprivacy_verifier", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr
    assert "MemoryError" not in done.stdout
    assert done.returncode == 1


# ---- forgeries ---------------------------------------------------------------------------


def claim_what_is_computed(document: Document) -> None:
    """Make the claims those that the verifier itself computes."""
    document["claim"] = claimed(document)["claim"]


def concave(document: Document) -> None:
    """State min −I(W; X̂), whose minimum is negative, with 0 at a constant channel."""
    program = document["program"]
    program["objective"]["weights"], program["rows"] = {"W": -1.0}, {}
    document["dual"] |= {"multipliers": {}, "scores": {}}
    document["primal"] = listed([[1, 0], [1, 0]], 1)


def idle_row(**changes: Any) -> Document:
    term = {"name": "", "weights": {}, "cost": None, "cost_radius": 0.0, "constant": [0.0, 0.0]}
    return {
        "term": term,
        "sense": "<=",
        "bound": "1",
        "radius": 0.0,
        "per_output": False,
        **changes,
    }


def second_term_in_the_objective(document: Document) -> None:
    concave(document)
    document["program"]["objective"]["term"] = {"weights": {}}
    claim_what_is_computed(document)


def row_without_a_name(document: Document) -> None:
    concave(document)
    document["program"]["rows"] = {"": idle_row()}
    claim_what_is_computed(document)


def term_named_value(document: Document) -> None:
    document["program"]["terms"]["value"] = document["program"]["terms"]["distortion"]
    claim_what_is_computed(document)
    document["claim"] |= {"lower": 123.0, "upper": 124.0}


def constant_in_a_row_per_output(document: Document) -> None:
    row = document["program"]["rows"]["budget"]
    row |= {"per_output": True, "bound": "1/2"}
    row["term"]["constant"] = [1.0, 0.0]
    document["dual"]["multipliers"]["budget"] = [100.0, 100.0]
    claim_what_is_computed(document)


def contradiction_by_a_constant_in_a_row_per_output(document: Document) -> None:
    constant_in_a_row_per_output(document)
    document["dual"]["objective"] = 0
    claim_what_is_computed(document)


def certified_but_wide(document: Document) -> None:
    document["claim"] |= {"lower": -1e9, "upper": 1e9}


def unknown_view(document: Document) -> None:
    document["program"]["objective"]["weights"] = {"none": 1.0}
    document["primal"] = None
    claim_what_is_computed(document)


def unknown_view_in_a_row(document: Document) -> None:
    document["program"]["rows"]["other"] = idle_row(
        term={**idle_row()["term"], "weights": {"none": 1.0}}
    )
    document["primal"] = None
    claim_what_is_computed(document)


def unknown_auxiliary(document: Document) -> None:
    document["program"]["auxiliaries"] = {"a": {"kind": "none", "bound": [2.0, 0.0]}}
    document["dual"] = None
    claim_what_is_computed(document)


def negative_weight_in_a_row(document: Document) -> None:
    document["program"]["rows"]["other"] = idle_row(
        term={**idle_row()["term"], "weights": {"W": -1.0}}, bound="-1/10"
    )
    document["dual"]["multipliers"]["other"] = 10.0
    claim_what_is_computed(document)


def equality_with_information(document: Document) -> None:
    document["program"]["rows"]["other"] = idle_row(
        term={**idle_row()["term"], "weights": {"W": 1.0}}, sense="==", bound="1/100"
    )
    document["dual"]["multipliers"]["other"] = -10.0
    claim_what_is_computed(document)


def negative_multiplier(document: Document) -> None:
    document["dual"]["multipliers"]["budget"] *= -1
    document["primal"] = None
    claim_what_is_computed(document)
    document["claim"]["lower"] = 0.01


FORGERIES = [
    second_term_in_the_objective,
    row_without_a_name,
    term_named_value,
    constant_in_a_row_per_output,
    contradiction_by_a_constant_in_a_row_per_output,
    certified_but_wide,
    unknown_view,
    unknown_view_in_a_row,
    unknown_auxiliary,
    negative_weight_in_a_row,
    equality_with_information,
    negative_multiplier,
]


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda f: f.__name__)
def test_a_forged_document_is_refused(
    forge: Callable[[Document], None], documents: dict[str, Document]
) -> None:
    document = copy.deepcopy(documents["plain"])
    try:
        forge(document)
    except UnprovableError:
        return  # refused already where its ends are computed
    assert verify.disagreements(signed(document))


def test_ends_that_cross_are_no_certificate() -> None:
    """Where lower > upper something is broken, so nothing is certified."""
    assert verify.status(0.0, 1e-7, 1e-6) == "certified"
    assert verify.status(0.0, 1e-5, 1e-6) == "loose"
    assert verify.status(1.0, 0.0, 1e-6) != "certified"


# ---- every field ------------------------------------------------------------------------


def mutations(document: Document, every: int = 1) -> Iterator[tuple[str, Document]]:
    """Yield copies of a document, each changed in one place; one in so many, chosen at random."""
    rng = np.random.default_rng(every)

    def edited(path: tuple[Any, ...], value: Any) -> Document:
        changed = copy.deepcopy(document)
        get(changed, path[:-1])[path[-1]] = value
        return changed

    for path in leaves(document):
        if path == ("sha256",):
            continue
        old, where = get(document, path), "/".join(map(str, path))
        if not rng.integers(every):
            dropped = copy.deepcopy(document)
            del get(dropped, path[:-1])[path[-1]]
            yield f"{where} dropped", dropped
        news: list[Any] = [None, "x", []]
        if isinstance(old, bool):
            news += [not old]
        elif isinstance(old, int):
            news += [old + 1, old - 1, -old, old + 0.5, math.nan]
        elif isinstance(old, float):
            news += [old * (1 + 1e-3) + 1e-3, old * (1 - 1e-3) - 1e-3, -old, 1e300, math.inf]
            news += [math.nextafter(old, INF), math.nextafter(old, -INF)]
        elif isinstance(old, str):
            news += ["", old + "x", old[:-1], "inf", "-inf", "<=", "==", "1/3", "-1"]
        elif isinstance(old, list):
            news += [old[:-1], old + old[-1:], old[::-1]]
        elif isinstance(old, dict):
            news += [{}, {**old, "": old}, {**old, "value": next(iter(old.values()), 0)}]
        for new in news:
            if json.dumps(new) != json.dumps(old) and not rng.integers(every):
                yield f"{where} = {json.dumps(new)[:40]}", edited(path, new)


@pytest.mark.parametrize(("name", "every"), EVERYWHERE)
def test_no_field_can_be_changed_unnoticed(
    name: str, every: int, documents: dict[str, Document]
) -> None:
    document = documents[name]
    changes = 0
    for where, changed in mutations(document, every):
        assert verify.disagreements(changed), f"{where}: not noticed"
        changes += 1
    assert changes >= 300 / every


@pytest.mark.parametrize(("name", "every"), some_at_length(EVERYWHERE, 1))
def test_no_change_that_is_signed_makes_a_false_claim(
    name: str, every: int, documents: dict[str, Document]
) -> None:
    document = documents[name]
    accepted, refused, false = [], 0, []
    for where, changed in mutations(document, every):
        if verify.disagreements(signed(changed)):
            refused += 1
            continue
        accepted.append(where)
        false += [where] if falsehood(plainly(changed), document) else []
    assert not false, false
    assert refused >= 200 / every
    assert accepted  # a worse multiplier's true claim, another name


@pytest.mark.parametrize(("name", "every"), some_at_length(EVERYWHERE, 1))
def test_a_new_claim_for_a_changed_program_is_true(
    name: str, every: int, documents: dict[str, Document]
) -> None:
    """Whatever the verifier computes from a changed document is true of that document."""
    judged, false = 0, []
    for where, changed in mutations(documents[name], every):
        if where.startswith(("claim", "schema", "accuracy")):
            continue
        try:
            claim_what_is_computed(changed)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            continue  # refused; how is another test's question
        if verify.disagreements(signed(changed)):
            continue
        judged += 1
        false += [where] if falsehood(plainly(changed), documents[name]) else []
    assert not false, false
    assert judged >= 50 / every


# ---- the verifier itself -----------------------------------------------------------------


def test_ends_are_rounded_outward() -> None:
    from flint import arb, fmpq

    rng = np.random.default_rng(0)
    for _ in range(2000):
        sign, power = int(rng.choice([-1, 1])), int(rng.integers(-1150, 890))
        exact = sign * Fraction(int(rng.integers(1, 2**62)) * 2**60 + 1) * Fraction(2) ** power
        ball = arb(fmpq(exact.numerator, exact.denominator))
        low, high = floor(ball), ceil(ball)
        assert Fraction(low) <= exact <= Fraction(high)
        assert high - low <= 2 * max(math.ulp(high), math.ulp(low))
    for value in (0.0, 1.0, 0.1, 5e-324, 1.7976931348623157e308, -0.1):
        assert floor(arb(value)) == value == ceil(arb(value))
    huge, nan = arb(10) ** 400, arb("nan")
    assert floor(huge) <= 1.7976931348623157e308
    assert ceil(huge) == INF
    assert ceil(-huge) >= -1.7976931348623157e308
    assert floor(-huge) == -INF
    assert (floor(nan), ceil(nan)) == (-INF, INF)
    both = arb(0.0, 1.0)
    assert floor(both) <= -1.0
    assert ceil(both) >= 1.0
