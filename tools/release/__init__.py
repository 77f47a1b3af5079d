"""A release: its checks, its files and its list of parts."""
