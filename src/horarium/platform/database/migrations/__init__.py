"""Migrations of the tables: an Alembic script directory inside the package."""
