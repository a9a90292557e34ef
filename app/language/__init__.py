"""Analysis of natural language: pure functions of text, without models and without storage.

analyzer         words of any language as index terms (`word_forms`, `languages` with stop words)
date_words       words of dates in ten languages, and texts as their symbols
date_phrases     dates that a question names; whether a text tells or asks for a time
date_terms       dates as index terms, and those near the dates of a query
sentences        plain sentences and weighted terms of Markdown text
extractive       summaries made of a text's own sentences
titles           the first words of a conversation, without its greeting; plain text on one line
document_chunks  text of documents, cut into chunks
schedules        phrases of times as cron expressions, and due times
secrets          keys, tokens and passwords in texts
statements       facts found by patterns in what users write about themselves
"""
