"""The canonical programs as plain, exact data."""
