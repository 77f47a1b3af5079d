"""Why, and for which viewer."""
