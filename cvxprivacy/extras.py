"""Packages that not every install has: what an extra brings, and the line to type for it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cvxprivacy.errors import MissingPackageError

__all__ = ["is_of_engine", "nw", "pd", "required"]

_ENGINES = {  # packages of frames and series
    *("_duckdb", "cudf", "dask", "dask_expr", "duckdb", "ibis", "modin", "narwhals", "pandas"),
    *("polars", "pyarrow", "pyspark", "sqlframe"),
}


def required(module: str, requirement: str, need: str) -> Any:
    """Return a module of a package that an extra brings.

    Parameters
    ----------
    module : str
        Its dotted name.
    requirement : str
        What to install: a distribution, with the extra that brings the package.
    need : str
        What needs it, such as "a report".

    Raises
    ------
    MissingPackageError
        If the package is not installed.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:  # one that the package itself needs
            raise
        raise MissingPackageError(package, requirement, need) from None


class _Deferred(ModuleType):
    """A package of the extra ``tables``, imported as soon as one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what asks whether a module has it means this one
            raise AttributeError(name)
        return getattr(required(self.__name__, "cvxprivacy[tables]", "a table"), name)


if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd
else:
    nw, pd = _Deferred("narwhals"), _Deferred("pandas")


def is_of_engine(values: Any) -> bool:
    """Tell what may be a frame or a series, of any library, from a list, an array or a law."""
    return any(kind.__module__.partition(".")[0] in _ENGINES for kind in type(values).__mro__)
