"""The command line: tables in, released tables and proofs out.

Exit codes: 0 done; 1 a proof is not verified or not of the problem, or its files are not of one
set, or a criterion is broken by the table that was drawn or audited; 2 wrong input or usage; 3 no
release satisfies the constraints, or no merging of a drawn table's groups (`release --ensure
table`, `apply --criterion`); 4 nothing finite could be proved; 5 the release is made, but proved to
be optimal only loosely; 70 an error of the package; 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
import warnings

import click

from cvxprivacy_sdc.commands.attack import attack
from cvxprivacy_sdc.commands.audit import audit
from cvxprivacy_sdc.commands.plan import plan
from cvxprivacy_sdc.commands.release import apply, release
from cvxprivacy_sdc.commands.solve import certify, solve
from cvxprivacy_sdc.commands.verify import verify
from cvxprivacy_sdc.statements.exits import Commands

__all__ = ["main"]

EPILOG = (__doc__ or "").split("\n\n", 1)[1]


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cvxprivacy-sdc")
def main() -> None:
    """Release tables by the optimal randomisation, and prove that it is optimal."""
    warnings.showwarning = lambda message, *_: click.echo(f"cvxprivacy: {message}", err=True)
    # a process that is terminated, or whose terminal is closed, unwinds: files half-written go
    for name in ("SIGTERM", "SIGHUP"):
        # not every system has the latter, and nohup ignores it
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda received, _: sys.exit(128 + received))


for command in (plan, release, apply, attack, audit, verify, solve, certify):
    main.add_command(command)
