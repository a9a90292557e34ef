"""Rendering: from Markdown to text documents; without widgets, files or network.

document_builder  the class to use: a text, complete or streamed, becomes a document in steps
splitter          where a text can be cut, so that each step is small
parser            Markdown, a few HTML tags and plain user text to markdown-it tokens
definitions       link and footnote definitions, found ahead of parsing
writer            tokens to blocks of a document; `inline`, `tables`: its parts; `blocks` edits its end
formats           character and block formats of a theme, and custom properties
document          a document that loads nothing but attached images, and its parts that open and close
decorations       what is painted beneath the text
highlight         syntax highlighting (Pygments)
formulas          LaTeX typeset as SVG
images            attached images for the screen, made smaller by `image_program`
plain_text        selections as plain text, positions in UTF-16
links             checks links before they are opened
"""
