"""Why, and for whose eyes."""
