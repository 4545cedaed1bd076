"""Programs over whole counts: their unknowns, their rows, and the rounds that solve them."""
