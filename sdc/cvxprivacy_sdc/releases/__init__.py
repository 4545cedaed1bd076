"""From an optimal channel to a released table that satisfies its criteria."""
