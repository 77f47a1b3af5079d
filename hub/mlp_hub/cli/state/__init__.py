"""State directory of a hub: its folders, databases, identity, uids, ports, and the plan of its processes."""
