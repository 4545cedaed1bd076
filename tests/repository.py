"""Where the repository is, and its scripts."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HAS_SDC = importlib.util.find_spec("cvxprivacy_sdc") is not None


def script(path: Path):
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


def scripts() -> list[Path]:
    return sorted(p for folder in ("problems", "figures") for p in (ROOT / folder).glob("*.py"))


def needs_sdc(path: Path) -> bool:
    """Return whether a script is of disclosure control, and tested in ``tests/sdc/scripts``."""
    return "cvxprivacy_sdc" in path.read_text(encoding="utf-8")


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return set(done.stdout.split())
