"""Preemption: jobs that can be evicted for others, the cheapest victims, and moves that defragment nodes."""
