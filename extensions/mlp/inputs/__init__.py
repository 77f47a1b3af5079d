"""What a program inside a job was given: parameters, variables, datasets."""
