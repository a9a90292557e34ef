"""Passages in, ranked hits out: text analysis and the indexes that can be rebuilt at any time.

analyser      words of any language as index terms; `languages` and `stop_words` help it
text_index    the tantivy index; `text_schema`, `text_query` and `index_folder` are its parts
query         the search box's language
snippets      the best cut of a passage, with the matching words marked; `markdown` cleans it
"""
