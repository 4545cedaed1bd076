"""What proposes an optimum; nothing here is trusted."""
