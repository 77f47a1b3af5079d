"""What administrators tell everybody, or the members of their tenant."""
