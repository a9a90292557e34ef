"""The transcript: a conversation of any length, drawn turn by turn.

view           TranscriptView, the only class others need, and `values`, what it takes
virtual        a scroll area over very many items; anchor, heights: its arithmetic
turn           one turn: frames and answer are its messages, meta the line under each
message_text   one text; document_view: how a drawn document behaves under mouse and keyboard
folds, panels  what is folded, and what stands between messages
find, focus    found words; where Tab goes. contents, reply, pacing: what comes, and when
parts          stacking and wrapping; look: what all are made with; steps: drawing in small steps
"""
