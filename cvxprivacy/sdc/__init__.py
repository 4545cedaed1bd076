"""Statistical disclosure control: masking methods, what they lose, and what they leave at risk."""
