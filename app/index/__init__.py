"""Text index, vector index and ranking; both indexes can be rebuilt at any time.

text_index        tantivy index, a document per message; `document_writer` (with the
                  schema), `text_query`, `text_snapshot` and `index_folder` are its parts
vector_index      all vectors of a space in memory, in blocks (`vector_block`)
text_sync         brings the text index up to date with the database; `vector_sync` the vector
                  indexes, `token_sync` the `token_index`; all run in a `follower`
ranking           weighted features of words, context, meaning and `message_traits`, which also recognize small talk
relevance         calibrated likelihood that a hit answers the question
question          parsing of questions, `named_questions` those that ask for days or for all facts; `query`
                  parses the search language
snippets          excerpts with marked words
id_set            passages that a search is limited to
space_traits      traits of an embedder's space, measured once
"""
