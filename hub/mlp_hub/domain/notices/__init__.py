"""Notices and announcements: what is sent, to whom, and by which way."""
