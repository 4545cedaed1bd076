"""What a released table is still good for, beside the original and other maskings."""
