"""Tenants in the cluster: a namespace of each and what stands in it, what all of them need, and who keeps it so.

Each module says what objects of one kind are to be, of the installation and the tenant alone; `keeper` has them so.
"""
