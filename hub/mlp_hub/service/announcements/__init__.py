"""Messages of administrators to everybody, or to the members of their tenant."""
