"""How covariance programs are solved; nothing here is trusted."""
