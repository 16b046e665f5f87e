"""What happened, kept: the only room that speaks SQL. See `database` for transactions, `tables` for the schema."""
