"""Alerts of the platform by the service's own evaluation of the table of rules, their notices, and silences."""
