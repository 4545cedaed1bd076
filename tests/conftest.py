"""One BLAS thread per worker, no display, no deadlines; the public tables or their stand-ins."""

from __future__ import annotations

import gc
import os
import sys

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MPLBACKEND", "agg")

import hypothesis  # noqa: E402
import pytest  # noqa: E402

from tests.public_tables import tables  # noqa: E402, F401 (a fixture)
from tests.repository import HAS_SDC  # noqa: E402

# Without cvxprivacy_sdc the core is tested alone: not what is of both, pages and versions.
collect_ignore = [] if HAS_SDC else ["sdc", "docs", "test_versions.py"]

hypothesis.settings.register_profile("suite", deadline=None, print_blob=True, max_examples=40)
hypothesis.settings.load_profile("suite")


def pytest_sessionstart():
    """Collect no garbage while modules are imported, which leave none."""
    gc.disable()


def pytest_collection_finish():
    """From here on look at what tests make, and no more at what was imported."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def no_figure_is_left():
    """Close what a test has drawn: the next one that draws without axes begins anew."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
