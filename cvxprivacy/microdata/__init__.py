"""Tables: masking and coarsening them, what a release has lost, and what it still reveals."""
