"""A job from its admission to its end: reconciler, next action, effects, cleanup. For things of all kinds: the work queue, and workers of what is stored."""
