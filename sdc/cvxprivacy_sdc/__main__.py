"""``python -m cvxprivacy_sdc``: the command line."""

from cvxprivacy_sdc.commands import main

if __name__ == "__main__":
    main(prog_name="cvxprivacy")
