"""Context of a prompt: its parts, each within its token budget. Pure.

plan               the parts of a prompt
selection          which retrieved items go into it, and `items`: all of them, with the reason
growing_quotation  turns and summaries quoted by their best unit, then by more
text               recalled items as text, and citations of them in answers
token_budget       pieces of text as far as there is room
narrowing          the same retrieval under stricter settings
"""
