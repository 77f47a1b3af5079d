"""Requests of users about their jobs: submit, list, watch, resubmit."""
