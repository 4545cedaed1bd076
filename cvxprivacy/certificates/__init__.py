"""How a certificate is made: candidates are repaired, judged, and the best ends kept."""
