"""Durable state: SQLAlchemy Core tables, repositories, migrations."""
