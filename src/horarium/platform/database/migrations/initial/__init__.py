"""The schema of revision 0021, frozen: later revisions change the schema, never these modules."""
