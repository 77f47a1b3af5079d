"""Limits that people meet: refusals name them, and the reference page of limits is made of this table.

Other numbers stay beside the code that they are about; `Tuning:` or `Safety:` below them brings them to the same page.
"""

from __future__ import annotations

WINDOW_DAYS = 30
"""Days that one booked window may last."""
WINDOW_DAYS_AHEAD = 366
"""Days from now until a booked window may start."""
WINDOWS_OF_TENANT = 100
"""Booked windows of one tenant that are not over."""
WINDOWS_IN_ALL = 1000
"""Booked windows of all tenants that are not over: all are checked again when a quota or the nodes change."""
OFFERS_OF_USER = 8
"""Offers to one user that are worked out at a time, waiting ones included: each costs as much as an answer why a job waits."""
WHAT_IF_RUNS = 2
"""What-if runs at a time, of all administrators together, one of each."""
WHAT_IF_EXPORTS = 2
"""Exports as a scenario at a time, of all administrators together, one of each."""
WHAT_IF_JOBS = 20_000
"""Jobs of one what-if run."""
WHAT_IF_NODES = 10_000
"""Nodes of one what-if run."""
WHAT_IF_S = 60.0
"""Seconds that both runs of a what-if may take together."""
ANNOUNCEMENTS = 20
"""Announcements to everybody, and to the members of one tenant, that are not over."""
ANNOUNCEMENT_DAYS = 366
"""Days from now until an announcement ends."""
APPS_OF_USER = 50
"""Apps of one user: each is looked after as long as it is there, and has a port."""
SWEEPS_OF_USER = 500
"""Sweeps of one user: each has its trials for the record; delete those that nobody needs."""
UNCONFIRMED_S = 120.0
"""Seconds that a resource request holds what it asked for until it is confirmed."""
KEYS_OF_APP = 50
"""Keys of one app."""
