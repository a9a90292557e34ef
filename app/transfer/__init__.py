"""Import and export of conversations.

importing       the import run: reads files and stores conversations
importer        imported conversations to local ids, turns and passages; `existing` finds earlier imports,
                `other_records`, `library` and `facts` store what an export contains besides messages
source_files    files of followed programs: which exist, changed or are gone
growth          what a followed program added to a message; `open_replies` are those it still writes
import_history  what each import did, to undo it
turns           segments, states, problems and usage, which messages lack
importers       formats to conversations with the source's ids (`app.domain.transfer`)
archive         a file, zip or folder as named streams (`zip_reader`)
attaching       files of messages; `files_beside`: those of an export
found_exports   exports in a folder; `export_cache`: what a preview read of one
exporting       the export run; formats are Markdown and `json_format`
"""
