"""``cvxprivacy attack``: what the columns that a release copies reveal together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.columns import (
    leave_out,
    leave_out_again,
    loaded_channel,
    refuse_unknown,
)
from cvxprivacy_sdc.statements.exits import note_reading, say
from cvxprivacy_sdc.statements.outputs import progress

__all__ = ["attack"]


@click.command(cls=shared.Grouped)
@click.argument("table", type=click.Path())
@shared.columns("--sensitive", "Confidential column W, or several.")
@shared.columns("--key", "Columns X that a release perturbs.")
@shared.bins("")
@shared.recoded
@click.option("--weights", metavar="COLUMN", help="Survey weights.")
@shared.missing("not counted")
@shared.file(
    "--channel",
    "The channel that `release --channel` kept, in place of --key and --sensitive.  It says how "
    "much of what is changed is guessed, in another draw.",
)
@shared.leaves_out("Columns that are not in the released table.")
@shared.as_json()
@shared.reads_tables
def attack(
    table: str, reading: dict[str, Any], channel: str | None, drop: Sequence[str],
    keep_columns: Sequence[str], **options: Any,
) -> None:  # fmt: skip
    """Guess the key and the confidential column of TABLE from the columns that a release copies.

    It finds sums, differences and functions of copied columns that are a protected one; guesses
    each protected column by boosted trees, learnt from half of up to 20,000 records and tried on
    the other half; counts the records that are unique; and proposes columns to leave out.
    """
    from cvxprivacy_sdc.copied.joint_disclosure import copied_disclosure
    from cvxprivacy_sdc.dossier.report import joint_lines
    from cvxprivacy_sdc.formats.table_files import open_table
    from cvxprivacy_sdc.statements.statement import counting_of, role_columns, source_of

    typed = ("sensitive", "key", "bins", "weights")
    kept = None if channel is None else loaded_channel(channel)
    if kept is None:
        for name in typed[:2]:
            if not options[name]:
                remedy = "name its columns, or pass --channel"
                raise InputError(f"--{name}", "none, without --channel", remedy)
        opened = note_reading(open_table(table, reading))
        counting = counting_of(options, opened.header)
        columns = [name for names in role_columns(counting).values() for name in names]
        asked_for = drop or None, keep_columns or None
        leave_out(opened, *asked_for, key=counting["key"], used=columns)
        frame, source = source_of(opened, all_columns=True, **counting)
        schema = source.schema
    else:
        others = {**options, **options["recoding"], "missing": options["missing"] != "refuse"}
        for name in (*typed, "missing", *options["recoding"]):
            if others[name]:
                remedy = "leave out either: the channel knows its columns"
                raise InputError("--channel", f"with --{name}", remedy)
        schema = kept.schema
        assert schema is not None
        opened = note_reading(open_table(table, reading, recorded=schema.reading))
        leave_out_again(opened, schema, drop, keep_columns, None)
        refuse_unknown("--channel", schema.columns, opened.header)
        used = {*schema.columns, schema.weights}
        names = [name for name in opened.header if name in used or name not in opened.dropped]
        frame = opened.frame(names, binned=schema.bins)
    assert schema is not None
    _, together = copied_disclosure(
        frame, schema, opened.dropped, progress, channel=kept, together=True
    )
    assert together is not None
    document = {
        "table": table, "channel": channel, "sensitive": list(schema.sensitive),
        "key": list(schema.key), **together.document(),
    }  # fmt: skip
    lines = joint_lines(document) + [f"note: {line}" for line in together.advice()]
    say(document, "\n".join([f"{table}: {together.records:,} records", *lines]))
