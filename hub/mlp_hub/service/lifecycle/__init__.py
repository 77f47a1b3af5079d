"""Lifecycle of a job from admission to end: reconciler, next action, effects, cleanup.

For objects of all kinds: the work queue, and workers of stored data.
"""
