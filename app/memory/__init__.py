"""Services on what the program remembers: search, recall, facts, summaries, the profile, topics.

search            queries to results, by words and by meaning, within the limits of projects
recall            what answers a question: turns, conversations, facts, documents
context           the prompt: which recalled items it contains, within a budget of tokens
topics            conversations grouped by their vectors
facts, summaries  what the user does with them; also `core_memory`, with archival memory, and
                  `memory_writes`: what models wrote there; `user_texts` checks texts
profile           the lines about the user in every prompt; `profile_lines` makes them from facts
secrets           keys and passwords in the library, and how they are forgotten
"""
