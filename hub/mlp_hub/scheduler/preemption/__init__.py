"""Preemption: who may be evicted for whom, the cheapest victims, and moves that defragment nodes."""
