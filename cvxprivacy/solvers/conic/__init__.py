"""Programs as CVXPY has them; the only room that imports it."""
