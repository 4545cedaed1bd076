"""What columns that are copied unchanged reveal."""
