"""The database, its journal and its backups: the only package that knows DuckDB.

store.py       the door: commit() for journalled changes, read() for queries
journal.py     the append-only record of every change, durable before "saved" is said
database.py    the DuckDB connection: settings, cursors per thread, reopening after a fatal error
apply.py       a change becomes rows
migrations.py  the schema, as numbered steps
recovery.py    the ladder that opens whatever it finds
backup.py      verified copies, thinned by age
spaces.py      a table of vectors for each embedder; `vectors.py` reads and writes them
and one repository of queries for each aggregate.
"""
