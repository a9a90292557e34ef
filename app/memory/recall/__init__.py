"""Recall: what of the library answers a question. `app.memory.context` selects from it for a prompt.

service            facts, conversations, turns and documents that answer a question
ranking            passages of a scope ranked for a question, with votes and age
retrieved          ranked turns and messages with their texts, in units that `quotation` chooses from
facts              recall of facts and saved texts
named              recall of what a question asks for by name; `days` of the conversations of days
mentions           conversations that a message names as `@TITLE`
answers            the sentences that answer, for tools; `brief` is made of them
starter_questions  questions that an imported library can answer
"""
