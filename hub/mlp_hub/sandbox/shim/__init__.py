"""Process next to each sandbox; standard library only, since every job starts one.

It is not in its sandbox's control group, outlives the hub, and everything inside dies with it.
"""
