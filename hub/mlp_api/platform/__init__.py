"""The platform on the wire: nodes, what-if, audit, overview, announcements and notices."""
