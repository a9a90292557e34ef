"""Commonplace without its window: everything that remembers, nothing that draws.

The layers, highest first; each may import only those below it (import-linter enforces it):

cli        the command line, and what a running window executes for it
bootstrap  build(): the only place where the parts meet, a module for each
chat       the exchange loop, what a command or a tool of the model does
workers    the background tasks that keep memory up to date
check      every reference, count and index verified, derived things mended
memory     turns, search, summaries, recall
transfer   what comes in (importers) and goes out (export)
index      text analysis and the rebuildable indexes: passages in, ranked hits out
providers  language models; the only home of vendor SDKs
storage    the database, its journal and backups; the only home of DuckDB
system     folders, locks, keys, logs
domain     values and words; standard library only
"""
