"""Programs too large for tables: an accelerated Bregman proximal gradient method."""
