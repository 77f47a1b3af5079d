"""Apps: their phases, ways in and usage."""
