"""Passages in, ranked hits out: text analysis and the indexes that can be rebuilt at any time.

analyser      words of any language as index terms; `languages` and `stop_words` help it
text_index    the tantivy index, a document a message; `text_schema`, `text_query`, `text_ranking`
              and `index_folder` are its parts
vector_index  every vector of a space in memory, looked at one by one; `vector_block` is a piece of it
traits        what a message is like apart from its words; `question` what a question wants besides
ranking       words, context and meaning weighed together; `evidence` says whether anything answers
              at all, by a scale that `calibration` makes the same for every space
small_talk    what asks for nothing
query         the search box's language
snippets      the best cut of a passage, with the matching words marked; `markdown` cleans it
"""
