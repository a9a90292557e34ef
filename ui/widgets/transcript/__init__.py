"""Transcript widgets: a conversation of any length, rendered turn by turn.

view            TranscriptView, the one class to use; `values`: what it shows
virtual_column  a scroll area over very many items; `heights`: estimates, sums, scroll anchors;
                `target`: where it scrolls to
turn            one turn; `turn_data`: what is loaded of turns; `live_reply`: a streaming reply
message_frame   a message; `answer`: everything that answers a question; `message_footer`: actions
message_text    one text; `document_view`: its selection and links; `wide_areas`: its wide parts
folds, panels   folded content; problems, dividers, attachments, sources
find, focus     find matches; keyboard focus and selection
layout          columns and rows whose height follows from their width
context         theme, events and drawing queue shared by all parts
"""
