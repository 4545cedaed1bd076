"""What a stranger checks: balls, the proofs, the documents, the verifier.

Nothing here needs more than the standard library and python-flint.
"""
