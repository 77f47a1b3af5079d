"""Quota of notebook servers, whatever starts them."""
