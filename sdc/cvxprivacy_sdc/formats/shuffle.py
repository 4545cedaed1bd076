"""Records in a secret random order: which one it is, and files that are written in it.

The order follows from a key of 256 bits, which is derived from the seed of the draws and tells
nothing of it; the private manifest keeps the key.  ``docs/reference/files.md`` has the bytes.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.release.draws import Draws
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy_sdc.formats.house import ENDING, House, manifest

__all__ = ["Shuffle", "in_order", "release_shuffled"]


@dataclass(frozen=True)
class Shuffle:
    """A secret order of records.

    Attributes
    ----------
    key : str
        64 hexadecimal digits.

    Examples
    --------
    >>> Shuffle("00" * 32).order(5)
    array([1, 3, 0, 4, 2])
    """

    key: str

    @classmethod
    def of(cls, seed: int) -> Shuffle:
        """Return the order that a seed of draws has, which is independent of the draws."""
        return cls(Draws(seed).derived("order").hex())

    @classmethod
    def kept(cls, released: str) -> Shuffle:
        """Return the order in which a table was released, or refuse one without its manifest."""
        kept = manifest(Path(released + ENDING)) or {}
        try:
            return cls(bytes.fromhex(kept["shuffle"]).hex())
        except (ValueError, KeyError, TypeError):
            name = Path(released + ENDING).name
            problem = f"{released} was shuffled, and {name} with its order is not there"
            remedy = "put the manifest that was written with it beside it"
            raise InputError("--released", problem, remedy, value=released) from None

    def order(self, records: int) -> npt.NDArray[np.int64]:
        """Return which record stands first, second, … of so many: by words of SHAKE-256."""
        stream = hashlib.shake_256(bytes.fromhex(self.key)).digest(8 * records)
        return np.argsort(np.frombuffer(stream, "<u8"), kind="stable")

    def undone(self, frame: Any) -> Any:
        """Return the records of a released frame in the order of the original, in memory."""
        table = as_narwhals(frame).lazy().collect()
        return nw.to_native(table[np.argsort(self.order(len(table))).tolist()])

    # ---- files ---------------------------------------------------------------------------

    def lines(self, pieces: Iterable[tuple[str, bool]]) -> Iterator[str]:
        """Yield pieces of a text: those that are no records as they come, then the records.

        Records wait in a temporary file without a name; in memory are 24 bytes for each.  A last
        line without an end stays one: the record that is written last has none then.

        Parameters
        ----------
        pieces : iterable of (str, bool)
            Each with whether it is a record; the first is the header.
        """
        starts, last, usual = array("Q", [0]), "\n", "\n"
        with tempfile.TemporaryFile() as held:
            for i, (text, record) in enumerate(pieces):
                last = text[len(text.rstrip("\r\n")) :]
                usual = last if i == 0 and last else usual
                if not record:
                    yield text if last or i == 0 else text + usual
                    continue
                blob = (text if last else text + usual).encode("utf-8", "surrogatepass")
                starts.append(starts[-1] + len(blob))
                held.write(blob)
            held.flush()
            records = len(starts) - 1
            if not records:
                return
            with mmap.mmap(held.fileno(), 0, access=mmap.ACCESS_READ) as view:
                for j, i in enumerate(map(int, self.order(records)), 1):
                    text = view[starts[i] : starts[i + 1]].decode("utf-8", "surrogatepass")
                    yield text if last or j < records else text.rstrip("\r\n")

    def tables(self, parts: Iterable[Any], records: int, most: int) -> Iterator[Any]:
        """Yield the records of Arrow tables in this order, in tables of about so many bytes.

        Each record is first put into the temporary file of the table that it will be in, so that
        one of these is in memory at a time.

        Parameters
        ----------
        parts : iterable of pyarrow.Table
            Of one schema.
        records : int
            In all of them.
        most : int
            Bytes of a table.

        Raises
        ------
        InputError
            For another number of records.
        """
        import pyarrow as pa

        place = np.argsort(self.order(records))  # of each record among the released
        with ExitStack() as stack:
            size, first, files, writers = 1, 0, list[Any](), list[Any]()
            for part in parts:
                if not part.num_rows:
                    continue
                if not writers:
                    size = max(1, min(records, most * part.num_rows // max(part.nbytes, 1)))
                    files = [stack.enter_context(tempfile.TemporaryFile())
                             for _ in range(-(-records // size))]  # fmt: skip
                    writers = [pa.ipc.new_stream(file, part.schema) for file in files]
                chosen = place[first : first + part.num_rows] // size
                first += part.num_rows
                for i in np.unique(chosen).tolist():
                    if i < len(writers):
                        writers[i].write_table(part.take(np.flatnonzero(chosen == i)))
            if first != records:
                problem = f"{first:,} records came where {records:,} were counted"
                raise InputError("table", problem, "run again when the file is at rest")
            for i, (file, writer) in enumerate(zip(files, writers, strict=True)):
                writer.close()
                file.seek(0)
                held = pa.ipc.open_stream(file).read_all().unify_dictionaries()
                yield held.take(np.argsort(place[place // size == i]))


def release_shuffled(opened: Any, house: House, seed: int) -> None:
    """Let an opened table be released in the order of a seed, which its manifest keeps."""
    opened.shuffle = Shuffle.of(seed)
    house.entries["shuffle"] = opened.shuffle.key


def in_order(shuffle: Shuffle | None, rows: Sequence[int]) -> Sequence[int]:
    """Return places of records in the order in which they are released."""
    return rows if shuffle is None else [rows[i] for i in shuffle.order(len(rows)).tolist()]
