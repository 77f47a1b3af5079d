"""Routes of the platform: nodes and queue, what-if, audit and announcements."""
