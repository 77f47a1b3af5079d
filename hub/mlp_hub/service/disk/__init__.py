"""Free space, what homes and jobs take of it, and what is done when it ends."""
