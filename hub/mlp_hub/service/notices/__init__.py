"""Notices to people about their jobs: stored with the event, sent by workers of the queue."""
