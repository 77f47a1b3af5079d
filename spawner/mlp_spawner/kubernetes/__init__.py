"""Notebook servers as pods of a cluster, whatever their quota."""
