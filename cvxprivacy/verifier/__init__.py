"""What a stranger checks: balls, the documents, and the proof of both ends from data alone.

Nothing here needs more than the standard library and python-flint.
"""
