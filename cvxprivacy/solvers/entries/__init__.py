"""Programs of thousands of letters, on the entries that matter; nothing here is trusted."""
