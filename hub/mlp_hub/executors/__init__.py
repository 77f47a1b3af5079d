"""Where jobs run: one small interface, several implementations."""
