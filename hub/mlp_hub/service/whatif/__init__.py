"""What-if questions, answered by a simulation in a separate process."""
