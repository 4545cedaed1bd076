"""Tables: coarsening and drawing them, auditing what they reveal, comparing what masks them."""
