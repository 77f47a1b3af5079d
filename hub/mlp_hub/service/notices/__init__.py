"""What people are told of their jobs: stored with what it tells of, sent by workers of the queue."""
