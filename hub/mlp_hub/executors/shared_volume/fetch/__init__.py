"""Process that copies objects of a bucket into a dataset.

Addresses that users name are contacted only here.
"""
