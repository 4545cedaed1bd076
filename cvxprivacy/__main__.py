"""``python -m cvxprivacy``: the command line."""

from cvxprivacy.cli import main

if __name__ == "__main__":
    main(prog_name="cvxprivacy")
