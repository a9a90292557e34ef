"""Commonplace without its window.

The layers, highest first; each may import only those below it (import-linter enforces it):

cli        the command line, also run by an open window for other processes
bootstrap  build(): the only place where the parts are wired together
commands   slash commands: one table for composer, command palette and help
mcp        memory for other programs (Model Context Protocol)
chat       exchanges with a model, its tools, and operations on conversations
workers    background tasks that keep memory up to date
privacy    every connection that the program can make, and whether it is on
check      integrity check of the database and everything derived from it
memory     search, recall, the context plan, facts, core memory, summaries
transfer   importers and exporters
index      the rebuildable text and vector indexes, ranking and calibration
providers  language models and embedding models; the only importer of vendor SDKs
storage    the database, its journal and backups; the only importer of DuckDB
system     paths, locks, keys, logs, the system's manual
language   analysis of natural language: index terms, sentences, statements
domain     values of the program; standard library only
"""

import os

# onnxruntime 1.29 and later sends telemetry and writes a device id under the user's cache folder. It
# reads this variable once, while it is imported, and child processes inherit it.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
