"""The process that copies objects of a bucket into a dataset. What a user names as an address is spoken to here and nowhere else."""
