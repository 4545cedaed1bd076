"""What a stranger checks: both ends of an optimum, proved from the data of a document alone.

Nothing here needs more than the standard library and python-flint, for balls of 128 bits.

>>> from cvxprivacy_verifier.verify import disagreements, read_document
>>> disagreements(read_document("proof.json"))  # every claim that is not proved
[]
"""

__version__ = "1.0.0rc1"
