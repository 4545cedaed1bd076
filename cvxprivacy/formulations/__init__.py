"""The papers' programs, one short file each."""
