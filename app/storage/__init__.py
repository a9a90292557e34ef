"""Storage: the database, its journal and its backups. The only package that knows DuckDB.

engine/    connection, journal, writer thread (`Store`), schema migrations, what an aggregate is
tables/    one module per aggregate: columns, how changes are written, erasing, integrity rules, queries
apply.py   journal records become rows; the list of aggregates
deletion/  forgetting, redaction of quotes, tombstones
safety/    recovery at startup, backups, restoring, maintenance
work/      what the background workers have yet to do
"""
