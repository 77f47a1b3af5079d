"""Cohorts of tenants: nominal quota, borrowing, lending, reserved and booked capacity."""
