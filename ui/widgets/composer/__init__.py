"""The composer and its parts.

composer       text box with Send and Stop; `message_box` is its text, `completion` its suggestions
file_row       files of the message, each a `file_chip`
memory_switch  what memory brings to the message; `project_chip`: its project
model_picker   button with the model
"""
