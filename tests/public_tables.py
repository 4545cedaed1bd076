"""The public tables that tests read: the real ones, or what stands in for them.

Tests compute from 200 records of *Adult*, committed in ``tests/data/adult``, and from persons,
companies and utilities made up here with the columns of the others.  Those marked ``real`` compute
from the real tables, and look at their numbers, where ``CVXPRIVACY_DATA`` names a folder with them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cvxprivacy.tables import datasets

COMPANY = (
    "FIXED.ASSETS CURRENT.ASSETS TREASURY UNCOMMITTED.FUNDS PAID.UP.CAPITAL SHORT.TERM.DEBT SALES "
    "LABOR.COSTS DEPRECIATION OPERATING.PROFIT FINANCIAL.OUTCOME GROSS.PROFIT NET.PROFIT"
)
REAL = pytest.param("real", marks=pytest.mark.real)
EITHER = ["sample", REAL]  # parameters of a fixture
SAMPLE = Path(__file__).parent / "data" / "adult" / "adult.csv"


@dataclass(frozen=True)
class Tables:
    """A folder that holds ``adult.csv``, ``census.csv``, …; ``real`` if they are the whole ones."""

    folder: Path
    real: bool

    def read(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.folder / f"{name}.csv")


def real_folder(*names: str) -> Path:
    """Return the folder of the real tables; skip the test if it does not hold these."""
    folder = Path(os.environ.get("CVXPRIVACY_DATA") or os.devnull)
    if not all((folder / f"{name}.csv").is_file() for name in names):
        pytest.skip("CVXPRIVACY_DATA does not name a folder with the real tables")
    return folder


def made_up_census(persons: int = 400) -> pd.DataFrame:
    """Make up persons whose amounts hang together as those of *Census* do."""
    rng = np.random.default_rng(1995)

    def some(share, amounts):
        return np.where(rng.random(persons) < share, amounts, 0)

    wages = rng.lognormal(10.2, 0.7, persons)
    interest = 1 + some(0.7, rng.lognormal(5.5, 1.5, persons))
    other = interest + some(0.2, rng.lognormal(8, 1, persons))
    earnings = wages + some(0.06, rng.lognormal(9, 1, persons))
    gross = (earnings + other) * rng.choice([1, 1.6], persons) * rng.uniform(0.9, 1.1, persons)
    taxable = gross * rng.uniform(0.5, 0.9, persons)
    return pd.DataFrame({
        "AFNLWGT": rng.integers(50_000, 400_000, persons), "AGI": gross,
        "EMCONTRB": rng.lognormal(7.5, 0.6, persons),
        "FEDTAX": 0.15 * taxable + 0.13 * np.maximum(taxable - 39_000, 0),
        "PTOTVAL": earnings.round() + other.round(),
        "STATETAX": 0.04 * taxable * rng.uniform(0, 2, persons), "TAXINC": taxable,
        "POTHVAL": other, "INTVAL": interest, "PEARNVAL": earnings,
        "FICA": 0.0765 * (wages + some(0.2, 1000)), "WSALVAL": wages,
        "ERNVAL": wages + some(0.15, 0.1 * wages),
    }).round().astype(int)  # fmt: skip


def made_up(columns: str, rows: int = 20) -> pd.DataFrame:
    """Make up whole amounts."""
    names = columns.split()
    amounts = np.random.default_rng(1996).integers(0, 10_000, (rows, len(names)))
    return pd.DataFrame(amounts, columns=names)


def made_up_utilities() -> pd.DataFrame:
    """Make up months of utilities, with some of the columns of *EIA*."""
    months = made_up("UTILITYID RESREVENUE COMREVENUE INDREVENUE OTHREVENUE")
    return months.assign(TOTREVENUE=months.drop(columns="UTILITYID").sum(axis=1))


@pytest.fixture(params=EITHER)
def tables(request, tmp_path_factory, monkeypatch) -> Tables:
    """Let ``CVXPRIVACY_DATA`` name a folder with all tables, and the loaders accept them."""
    if request.param == "real":
        return Tables(real_folder(*datasets.HOMES), real=True)
    folder, sample = tmp_path_factory.mktemp("tables"), SAMPLE.read_bytes()
    (folder / "adult.csv").write_bytes(sample)
    made_up_census().to_csv(folder / "census.csv", index=False)
    made_up(COMPANY).to_csv(folder / "tarragona.csv", index=False)
    made_up_utilities().to_csv(folder / "eia.csv", index=False)
    monkeypatch.setenv("CVXPRIVACY_DATA", str(folder))
    for name in datasets.HOMES:
        pin = hashlib.sha256((folder / f"{name}.csv").read_bytes()).hexdigest()
        monkeypatch.setitem(datasets.HOMES, name, replace(datasets.HOMES[name], table=pin))
    return Tables(folder, real=False)
