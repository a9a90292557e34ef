"""Remembering: search over everything, the indexes kept in step, what goes into a prompt.

search       a question in, `results` ready to be shown; `explain` says why a turn is not among them
meaning      questions into the space that answers; `embedders` makes what embeds them
index_sync   the text index in step with the database; `vector_sync` the vectors in memory
spaces       what each embedder has done, to look at and to delete; `coverage` the same of a turn
recall       what of the past answers a question nobody told where to look: `finding` looks,
             `found_turns` reads
context_plan what goes into a prompt, part by part: `recall_choice` takes what fits, `recalled_text`
             quotes it, `window` says which messages are sent whole; `citations` what was used of it
core_memory  the text in every prompt; `memories` texts saved on purpose
probes       questions kept, to be asked again after a change
overview     what memory holds in all
"""
