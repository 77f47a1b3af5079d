"""Datasets and models, and the storage that they take."""
