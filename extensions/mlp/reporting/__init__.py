"""Reports of a program inside a job: points, progress, event files, and their delivery."""
