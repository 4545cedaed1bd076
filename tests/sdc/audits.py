"""People and their coarsened table, and what the tests of the room ask of refusals and pages."""

from __future__ import annotations

import stat
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc

WHY = "the extra `tables` is not installed"
CRITERIA = [cpv.TCloseness(0.05), cpv.LDiversity(2.0), cpv.KAnonymity(10)]

GROUP_CRITERIA = st.sampled_from(
    [
        [],
        [cpv.KAnonymity(9)],
        [cpv.TCloseness(0.2)],
        [cpv.LDiversity(1.8), cpv.KAnonymity(5)],
        [cpv.DeltaDisclosure(1.0)],
    ]
)


def people(records=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, records)
    ill = np.array(["none", "cold", "flu"])[(rng.random(records) * 3 * age / 60).astype(int)]
    sex = rng.choice(["f", "m"], records)
    return pd.DataFrame({"id": range(records), "age": age, "sex": sex, "ill": ill})


def coarse(table):
    return table.assign(age=[f"{a // 20 * 20}+" for a in table["age"]])


def audited(table=None, released=None, **options):
    table = people() if table is None else table
    released = coarse(table) if released is None else released
    return sdc.audit(table, released, **{"key": ["age", "sex"], "sensitive": "ill", **options})


def wealth(n=600, seed=0):
    rng = np.random.default_rng(seed)
    key = rng.multivariate_normal([0, 5], [[1, 0.5], [0.5, 2]], n)
    pay = key @ [1.0, 0.5] + rng.normal(size=n) * 0.4
    return pd.DataFrame({"pay": pay, "a": key[:, 0], "b": key[:, 1] * 100, "name": "x"})


def refusal(argument, call, *arguments, **options):
    """Return the error of a call, which must name this argument."""
    with pytest.raises(cpv.InputError) as raised:
        call(*arguments, **options)
    assert raised.value.argument == argument, str(raised.value)
    return raised.value


def owner_only(path):
    return stat.S_IMODE(Path(path).stat().st_mode) == 0o600 or sys.platform == "win32"


class Page(HTMLParser):
    """What a browser would see: tags in order, and the text of each element."""

    VOID = ("meta", "path", "use", "rect")

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.pieces = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.pieces.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]
