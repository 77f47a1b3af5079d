"""Requests that somebody decides on: places in tenants, and more quota."""
