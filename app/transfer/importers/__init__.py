"""Importers: foreign exports to conversations, streaming and unafraid of what they find.

reading          read_export(): a path to conversations, whatever it is
detect           which importer reads a file, by its content
chatgpt, claude  one importer each; `chatgpt_content` and `citations` are parts of the first
commonplace      our own export, back again
building         what these share; `pieces` cuts the JSON, `tree` mends the tree, `values` is careful

A new format gets a module with a `read_...(stream, where)` generator and a line in `detect`.
"""

from app.transfer.importers.reading import read_export

__all__ = ["read_export"]
