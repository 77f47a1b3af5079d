"""Errors of serving a model."""

from __future__ import annotations


class NoModel(Exception):  # noqa: N818 - what is the matter
    """Error: the files are not a model that can be served here; the text has the reason and the remedy."""


class BadRequest(Exception):  # noqa: N818
    """The request does not fit the protocol, or the model; the text says what would be right."""
