"""Tables of passages, with their texts and vectors.

rows          how changes write and remove passages, and their integrity rules
queries       texts, work of the indexes, filters, counts
texts         the text of passages for indexes and results
spaces        embedding spaces; `vectors` lists what lacks them, `vector_rows` reads and writes them
recall_reads  passages and headers of conversations, coverage of turns
"""
