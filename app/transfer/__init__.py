"""Import and export of conversations.

importing      the import run: reads files and stores conversations
importer       imported conversations to local ids, turns and passages; `existing` finds earlier imports,
               `library_parts` and `facts` store what an export contains besides messages
growth         what a followed program added to a message; `open_replies` are those it still writes
importers      formats to conversations with the source's ids (`app.domain.transfer`)
archive        a file, zip or folder as named streams (`zip_reader`)
exporting      the export run; formats are Markdown and `json_format`
"""
