"""Search, recall, context plans, facts, summaries, profile, core and archival memory.

search            queries to results; `results` merges kinds and formats, `explain` and `probes`
                  explain rankings
vector_search     the answering embedder; `query_vectors` embeds questions, `space_measurements`
                  measures spaces, `embedders` and `spaces` select the embedder
recall            what answers a question; `recall_search` ranks, `recall_selection` selects for a
                  prompt (`recall_items`), `recalled_text` formats it, `context_plan` budgets the
                  prompt; `named_recall` finds what is asked for by name
facts             user operations on facts; also `summaries`, `core_memory`
profile           the lines about the user in every prompt, and decisions about what is proposed for
                  them; `profile_lines` makes lines from facts
answers           the sentences that answer; also `brief`, `mentions` and `starter_questions`
boundaries        what projects keep to themselves, and what a search covers
secrets           keys and passwords in the library, and how they are forgotten
coverage          whether turns are searchable; totals of memory
"""
