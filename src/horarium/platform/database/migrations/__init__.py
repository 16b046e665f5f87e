"""How the tables came to be: an Alembic script directory that travels inside the package."""
