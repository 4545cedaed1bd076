"""An intruder who has a released file alone: its bytes, its metadata, its lists, its order.

A table with a rare, a secret and a dropped value in every place where a format may keep one is
released in each format.  What is then looked for is what the original had and the released cells
have not; and the true key of records that were changed, guessed from their neighbours, from the
order in which categories are listed, and from the public list of regions with the copied ages:
where these fall, the next region begins.  ``python -m tests.sdc.commands.intruder 40`` runs more
trials.
"""

from __future__ import annotations

import json
import random
import re
import sys
import zipfile
import zlib
from collections import Counter
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
from openpyxl.comments import Comment
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation

from cvxprivacy_sdc.formats.shuffle import Shuffle
from tests.sdc.commands.runner import report

FORMATS = ("csv", "parquet", "xlsx", "sav", "zsav", "dta", "xpt")
CODED = ("sav", "zsav", "dta")  # regions are codes with labels, numbered as they first stand
OPTIONS = ("--sensitive", "ill", "--key", "region", "--budget", "0.4")
DROP, TOP = ("--drop", "person,ill"), ("--top", "region=5")  # in turn
REACH = 8  # neighbours on each side from which a record is guessed
PERMUTED = 200


@dataclass
class Attack:
    """What a released file gives away.

    Attributes
    ----------
    strings : list of str
        Of the original, in the file, and in none of the released cells.
    first : bool or None
        Whether the category that is listed first is the true key of the first record, which was
        changed; None where it was not.
    deviations : float
        By how many standard deviations more changed records are guessed than in a random order.
    guessed : float
        The share of the changed records that is.
    restored : float
        The share of the changed records whose region follows from the list and the ages.
    green : bool
        Whether the report says that the file may be released.
    """

    strings: list[str]
    first: bool | None
    deviations: float
    guessed: float
    restored: float
    green: bool


def people(seed: int, arranged: str, records: int = 300) -> pd.DataFrame:
    """Return a table sorted by its key and age, or in no order."""
    chance = random.Random(seed)
    towns = [f"Town{chance.randrange(10**6):06}q" for _ in range(7)]
    region = [*(chance.choice(towns[:5]) for _ in range(records - 4)), *towns[5:], *towns[5:]]
    people = [(town, chance.randrange(20, 60)) for town in region]
    chance.shuffle(people)
    people = sorted(people) if arranged == "sorted" else people
    shares = {town: 0.1 + 0.2 * i % 0.8 for i, town in enumerate(towns)}
    return pd.DataFrame({
        "region": [town for town, _ in people], "age": [age for _, age in people],
        "ill": ["Sickq" if chance.random() < shares[town] else "Wellq" for town, _ in people],
        "person": [f"Person{chance.randrange(10**9):09}q" for _ in people],
    })  # fmt: skip


def written(frame: pd.DataFrame, kind: str) -> dict[str, object]:
    """Write ``t.kind``, with secrets where there is room; return how regions are stored."""
    first = list(dict.fromkeys(frame["region"]))
    codes = {name: i for i, name in enumerate(first)} if kind in CODED else {n: n for n in first}
    stored = frame.assign(region=frame["region"].map(codes))
    labels = {"region": {code: name for name, code in codes.items()}}
    if kind == "csv":
        stored.to_csv("t.csv", index=False)
    elif kind == "parquet":
        _parquet(frame, first)
    elif kind == "xlsx":
        _workbook(frame)
    elif kind == "dta":
        pyreadstat.write_dta(stored, "t.dta", variable_value_labels=labels)
    elif kind == "xpt":
        pyreadstat.write_xport(stored, "t.xpt")
    else:
        how = {"compress": True} if kind == "zsav" else {"row_compress": True}
        pyreadstat.write_sav(stored, f"t.{kind}", variable_value_labels=labels, **how)
    return codes


def _parquet(frame: pd.DataFrame, first: list[str]) -> None:
    places = pa.array([first.index(name) for name in frame["region"]], pa.int8())
    listed = pa.array([*first, "Unusedq"])
    region = pa.DictionaryArray.from_arrays(places, listed)
    others = pa.Table.from_pandas(frame.drop(columns="region"))
    field = pa.field("region", region.type, metadata={"values": json.dumps(first)})
    pandas = json.loads(others.schema.metadata[b"pandas"])
    table = others.add_column(0, field, region).replace_schema_metadata({
        "pandas": json.dumps({**pandas, "attributes": {"towns": first}}), "towns": ", ".join(first),
    })  # fmt: skip
    pq.write_table(table, "t.parquet", row_group_size=70, compression="none", write_page_index=True)


def _workbook(frame: pd.DataFrame) -> None:
    book = openpyxl.Workbook()
    sheet, hidden = book.active, book.create_sheet("hidden")
    for row in [list(frame.columns), *frame.to_numpy().tolist()]:
        sheet.append(row)
        hidden.append(row)
    hidden.sheet_state = "hidden"
    book.properties.title, book.properties.creator = frame["person"][0], frame["person"][1]
    book.defined_names["first"] = DefinedName("first", attr_text=f'"{frame["region"][0]}"')
    sheet["A2"].comment = Comment(f"was {frame['region'][0]}", frame["person"][2])
    listed = DataValidation("list", formula1=f'"{frame["region"][3]},{frame["person"][3]}"')
    sheet.add_data_validation(listed)
    sheet.auto_filter.ref = f"A1:D{len(frame) + 1}"
    sheet.auto_filter.add_filter_column(0, [frame["region"][0]])
    sheet.auto_filter.add_sort_condition(f"A2:A{len(frame) + 1}")
    sheet.oddHeader.left.text = frame["person"][4]
    sheet.column_dimensions["A"].width = 1.5 + len(frame["region"][0])
    book.save("t.xlsx")


# ---- what is done with the released file --------------------------------------------------


def attack(kind: str, arranged: str, seed: int, *options: str) -> Attack:
    """Release a table in a format, and return what the file gives away."""
    frame = people(seed, arranged)
    codes = written(frame, kind)
    more = [*(TOP if seed % 2 else DROP), *(("--sheet", "Sheet") if kind == "xlsx" else ())]
    report("release", f"t.{kind}", *OPTIONS, *more, "--out", f"o.{kind}", "--report", "r.json",
           "--seed", seed, "--force", *options)  # fmt: skip
    names = {text: name for name, code in codes.items() for text in (code, str(code))}
    cells, true = [names.get(v, v) for v in released_cells(kind)], frame["region"].tolist()
    if seed % 2:
        kept = {name for name, _ in Counter(true).most_common(5)}
        true = [name if name in kept else "other" for name in true]
    if "--shuffle" in options:
        true = [true[i] for i in Shuffle.kept(f"o.{kind}").order(len(true))]
    secret = {*frame["region"], *({} if seed % 2 else [*frame["person"], *frame["ill"]]), "Unusedq"}
    secret -= {*cells}
    content = inflated(Path(f"o.{kind}"))
    strings = sorted(
        s for s in secret if any(s.encode(c) in content for c in ("utf-8", "utf-16-le"))
    )
    changed = np.array([a != b for a, b in zip(true, cells, strict=True)])
    listed = [names.get(v, v) for v in listing(kind)]
    hits, expected, spread = guessed(true, cells, changed)
    green = json.loads(Path("r.json").read_text("utf-8"))["verdict"]["may_be_released"]
    return Attack(
        strings, listed[0] == true[0] if changed[0] and listed else None,
        (hits - expected) / max(spread, 1e-9), hits / changed.sum(),
        float((blocks(kind, sorted({*frame["region"]})) == np.array(true))[changed].mean()), green,
    )  # fmt: skip


def blocks(kind: str, regions: list[str]) -> np.ndarray:
    """Return the region of each record, if they were sorted by region and age."""
    starts = np.diff(released_cells(kind, "age"), prepend=0) < 0  # as the ages fall
    return np.array(regions)[np.cumsum(starts) % len(regions)]


def released_cells(kind: str, column: str = "region") -> list[object]:
    """Return a released column."""
    readers = {"csv": pd.read_csv, "parquet": pd.read_parquet, "xlsx": read_sheet,
               "dta": pyreadstat.read_dta, "xpt": pyreadstat.read_xport}  # fmt: skip
    made = readers.get(kind, pyreadstat.read_sav)(f"o.{kind}")
    return (made[0] if isinstance(made, tuple) else made)[column].tolist()


def read_sheet(path: str) -> pd.DataFrame:
    """Return a sheet, by the reader that the package does not write with."""
    return pd.read_excel(path, engine="calamine")


def listing(kind: str) -> list[object]:
    """Return the regions as the file lists them, apart from its records."""
    if kind == "parquet":
        schema = pq.read_schema("o.parquet")
        for metadata in (schema.metadata, schema.field("region").metadata):
            if lists := re.findall("Town[0-9]+q", str(metadata)):
                return lists
        column = pq.read_table("o.parquet")["region"]
        return list(dict.fromkeys(v for c in column.chunks for v in c.dictionary.to_pylist()))
    if kind == "xlsx":
        book = zipfile.ZipFile("o.xlsx")
        parts = [book.read(n).decode() for n in book.namelist() if n.endswith("sharedStrings.xml")]
        return re.findall("<t[^>]*>(Town[^<]*)</t>", "".join(parts))
    if kind in CODED:
        read = pyreadstat.read_dta if kind == "dta" else pyreadstat.read_sav
        labels = read(f"o.{kind}", metadataonly=True)[1].variable_value_labels
        return sorted(labels.get("region", {}))
    return []


def inflated(path: Path) -> bytes:
    """Return the bytes of a file, with all that is compressed in it."""
    raw = path.read_bytes()
    if zipfile.is_zipfile(path):
        archive = zipfile.ZipFile(path)
        return raw + b"\n".join([*(n.encode() for n in archive.namelist()),
                                 *(archive.read(n) for n in archive.namelist())])  # fmt: skip
    parts = [raw]
    if path.suffix == ".parquet":  # what Arrow keeps of the schema is written in base 64
        parts += [str(field.metadata).encode() for field in pq.read_schema(path)]
    for start in (m.start() for m in re.finditer(b"\x78[\x01\x5e\x9c\xda]", raw)):
        try:
            parts.append(zlib.decompressobj().decompress(raw[start:]))
        except zlib.error:
            continue
    return b"\n".join(parts)


def guessed(true: list[str], cells: list[str], changed: np.ndarray) -> tuple[int, float, float]:
    """Return how many changed records their neighbours tell; mean and deviation by chance."""
    places = {name: i for i, name in enumerate(dict.fromkeys([*true, *cells]))}
    x, y = (np.array([places[v] for v in column]) for column in (true, cells))

    def hits(order: np.ndarray) -> int:
        counts = np.zeros((len(y), len(places)))
        along = np.eye(len(places))[y[order]]
        for step in range(1, REACH + 1):
            counts[step:] += along[:-step]
            counts[:-step] += along[step:]
        counts[np.arange(len(y)), y[order]] -= 0.5  # a changed record is another one
        counts[~changed[order]] = -1
        return int((counts.argmax(axis=1) == x[order])[changed[order]].sum())

    chance = np.random.default_rng(0)
    null = [hits(chance.permutation(len(y))) for _ in range(PERMUTED)]
    return hits(np.arange(len(y))), float(np.mean(null)), float(np.std(null))


def main(trials: int) -> None:
    """Print what is recovered in each format, by how the table was arranged and released."""
    print("format   arranged options          green strings first      guessed deviations restored")
    for kind in FORMATS:
        for arranged in ("sorted", "mixed"):
            for options in ((), ("--shuffle",)):
                with TemporaryDirectory() as folder, chdir(folder):
                    all_ = [attack(kind, arranged, s, *options) for s in range(trials)]
                first = Counter(one.first for one in all_ if one.first is not None)
                deviations = sum(one.deviations for one in all_) / len(all_) ** 0.5
                print(f"{kind:<8} {arranged:<8} {' '.join(options) or '-':<16} "
                      f"{sum(one.green for one in all_):>3}/{trials} "
                      f"{sum(len(one.strings) for one in all_):>7} "
                      f"{first[True]:>3} of {first[False] + first[True]:<3} "
                      f"{sum(one.guessed for one in all_) / trials:>8.1%} {deviations:>9.1f} "
                    f"{sum(one.restored for one in all_) / trials:>9.1%}",
                      flush=True)  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]))
