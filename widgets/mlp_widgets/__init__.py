"""Live widgets of MLP Hub."""
