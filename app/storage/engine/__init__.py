"""The storage engine: connection, journal, writer thread, schema migrations."""
