"""What-if questions, answered by simulating in a process of their own."""
