"""The counts of a table as the variables of an integer program, with proved bounds."""
