"""The interior-point method for channel programs; nothing here is trusted."""
