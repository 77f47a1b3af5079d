"""Booked windows of capacity."""
