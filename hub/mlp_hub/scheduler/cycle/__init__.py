"""One scheduling cycle: nominate, assign, preempt, admit, requeue; elastic growth."""
