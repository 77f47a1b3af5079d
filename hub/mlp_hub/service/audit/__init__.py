"""The audit log: its pages and exports, the heads of its chain outside of the database, shipping, and the check of the chain."""
