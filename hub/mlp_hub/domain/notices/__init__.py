"""Notices and announcements: their kinds, recipients and channels."""
