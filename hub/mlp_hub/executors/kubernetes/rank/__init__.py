"""Program that runs a rank in its pod: standard library of Python 3.9 only, because it runs in any image that has python3.

It travels to the pods as text, together with the few modules of the sandbox's shim that write logs.
"""
