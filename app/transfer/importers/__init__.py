"""Importers: streaming readers of export formats that tolerate damaged data.

reading          read_export(): detects the formats in a path and yields conversations
chatgpt, claude  one importer each; `chatgpt_content` and `citations` are parts of the first
commonplace      exports of this program
formats          what tells other formats apart, and how their files are read
agent_logs       parts shared by the importers of coding agents
(the others)     one importer each, with its `Format`s
building         shared by the importers: conversations and repaired message trees
pieces           JSON streams as events, on top of `scanner`; `values` reads JSON values

A new format needs a module with a reader and a `Format`, and a line in `reading.FORMATS`.
"""

from app.transfer.importers.reading import read_export

__all__ = ["read_export"]
