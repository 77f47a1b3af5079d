"""What goes wrong while a model is served."""

from __future__ import annotations


class NoModel(Exception):  # noqa: N818 - what is the matter
    """The files are no model that can be served here; the text says why and what would be right."""


class BadRequest(Exception):  # noqa: N818
    """The request does not fit the protocol, or the model; the text says what would be right."""
