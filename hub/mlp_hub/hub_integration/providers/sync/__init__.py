"""Changes at the provider that reach the hub: ended sessions, and people who left or changed groups."""
