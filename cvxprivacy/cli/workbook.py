"""Workbooks: one sheet of them is a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from cvxprivacy.cli.formats import imported
from cvxprivacy.cli.memory_table import MemoryTable, plain
from cvxprivacy.errors import InputError

__all__ = ["Workbook"]


class Workbook(MemoryTable):
    """One sheet of a workbook (``.xlsx``, ``.xls``, ``.ods``, …), read with python-calamine.

    The first row that is not empty has the names of the columns; rows without any cell are no
    records.  A formula is its value, and an error such as #N/A is missing.

    Parameters
    ----------
    options : mapping
        As of :class:`MemoryTable`; ``sheet`` is taken if the workbook has it.
    sheet : str, optional
        The sheet, which must be there.  By default the only one with cells.

    Raises
    ------
    InputError
        For a file that is no workbook, a sheet that is not there, several sheets to choose from,
        columns without a name or of the same name.
    """

    format = "excel"

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, Any],
        sheet: str | None,
        *,
        out: str | None,
        written: str,
    ) -> None:
        calamine = imported("python_calamine", "Excel")
        if written == "excel" and out is not None:
            imported("openpyxl", "writing Excel")  # before any work
        shown = os.fspath(path)
        try:
            book = calamine.CalamineWorkbook.from_path(shown)
            kinds = {
                m.name: m.typ == calamine.SheetTypeEnum.WorkSheet for m in book.sheets_metadata
            }
            sheets = {n: book.get_sheet_by_name(n) for n in book.sheet_names if kinds.get(n, True)}
            self.sheet = self._chosen(sheets, shown, sheet, options.get("sheet"))
            rows = sheets[self.sheet].to_python()
        except (OSError, calamine.CalamineError) as error:
            problem = f"{shown!r}: {str(error) or type(error).__name__}"
            remedy = "pass a workbook that can be read, without a password"
            raise InputError("table", problem, remedy) from None
        super().__init__(path, self._columns(rows, shown), options, out=out, written=written)

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        return {**super().reading(names, frame), "sheet": self.sheet}

    @staticmethod
    def _chosen(
        sheets: Mapping[str, Any], path: str, typed: str | None, recorded: str | None
    ) -> str:
        """Return the name of the sheet that is the table."""
        names = ", ".join(map(repr, sheets))
        if typed is not None and typed not in sheets:
            remedy = f"choose from {names}"
            raise InputError("sheet", f"{path} has no sheet {typed!r}", remedy, value=typed)
        if typed is not None or recorded in sheets:
            return typed or str(recorded)
        filled = [name for name, sheet in sheets.items() if sheet.total_height]
        if len(filled) > 1:
            problem = f"{path} has the sheets {', '.join(map(repr, filled))}"
            raise InputError("sheet", problem, "pass --sheet NAME")
        if not filled:
            raise InputError("table", f"{path}: no cells", "put the columns' names in row 1")
        return filled[0]

    @staticmethod
    def _columns(rows: Sequence[Sequence[Any]], path: str) -> dict[str, list[Any]]:
        """Return the columns below the first row; what has neither name nor cells is none."""
        if not rows:
            raise InputError("table", f"{path}: no cells", "put the columns' names in row 1")
        header, records = rows[0], list(rows[1:])
        while records and not any(v != "" for v in records[-1]):
            records.pop()
        if len(header) > 1:
            records = [row for row in records if any(v != "" for v in row)]
        columns: dict[str, list[Any]] = {}
        for i, title in enumerate(header):
            cells = [None if row[i] == "" else row[i] for row in records]
            name = plain(title)
            if name is None and all(cell is None for cell in cells):
                continue
            if name is None:
                problem = f"{path}: column {i + 1} of {len(header)} has no name"
                raise InputError("table", problem, "name it in the first row")
            if str(name) in columns:
                problem = f"{path}: column {i + 1} is the second that is named {str(name)!r}"
                raise InputError("table", problem, "make the names distinct")
            columns[str(name)] = cells
        return columns
