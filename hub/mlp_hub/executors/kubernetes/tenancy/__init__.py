"""Tenants in the cluster: a namespace of each with its objects, common objects, and their keeper.

Each module returns the wanted objects of one kind from the installation and the tenant alone.
`keeper` creates and keeps them.
"""
