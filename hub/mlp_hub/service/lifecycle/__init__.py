"""A job from its admission to its end: reconciler, next action, effects, cleanup."""
