"""Routes of apps, and those that their gateway calls."""
