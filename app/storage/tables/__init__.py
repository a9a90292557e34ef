"""Tables: one module per aggregate, with its columns, changes, integrity rules and queries.

To add a table, add a migration (`app.storage.engine.migrations`), describe it with an `Aggregate`
here and list that in `app.storage.apply`. A flag of a conversation is a field of `Conversation` and
`ConversationEdited`, a migration, and a line in `conversations`.
"""
