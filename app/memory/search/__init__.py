"""Search: from a query to results.

service           search by words and by meaning; `results` merges kinds and formats
scope             what a search covers: conversations, and what projects keep to themselves
explain           why a turn has its rank; `probes` are stored questions with the ranks of their answers
coverage          whether turns are searchable; totals of memory
vector_search     the answering embedder and its vectors in memory; `query_vectors` embeds questions
embedders         the embedder that the settings name; `spaces` switches it, `space_measurements`
                  measures its space
"""
