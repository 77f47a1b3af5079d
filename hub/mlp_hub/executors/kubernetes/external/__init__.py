"""Jobs that people make with kubectl: read, started, held again and reported.

Each is its user's object, and stays that.
"""
