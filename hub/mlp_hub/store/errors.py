"""The store's errors.

MLPError
└── Unavailable
    ├── StoreUnavailable   the database cannot be reached, written or committed to
    │   ├── DatabaseFileGone  its file is no longer where it was
    │   └── StatementFailed   it works, and refused what this one wrote
    │       └── ValueRefused  it has no place for a value that was given: a number beyond its column, a text with a NUL
    ├── StoreInUse         another service process works on this database
    ├── SharedSessions     a pooler gives one session of PostgreSQL to several connections
    └── WrongSchema        the database's tables are not those of this version
"""

from __future__ import annotations

from mlp_hub.domain.errors import Unavailable


class StoreUnavailable(Unavailable):
    """The database cannot be reached, written or committed to."""


class DatabaseFileGone(StoreUnavailable):
    """The database's file is no longer where it was: the next start would not find what is written."""


class StatementFailed(StoreUnavailable):
    """The database works, and refused what was written: nothing of this function is kept, others are not concerned."""


class ValueRefused(StatementFailed):
    """The database has no place for a value that was given, and never will: asking again changes nothing."""


class StoreInUse(Unavailable):
    """Another service process works on this database; two of them would both decide."""


class SharedSessions(Unavailable):
    """A pooler gives one session of PostgreSQL to several connections, so that locks and time limits of a session are lost."""


class WrongSchema(Unavailable):
    """The database's tables are not those of this version of the program."""
