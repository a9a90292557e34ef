"""From text to a document that can be drawn: no widgets, no files, no network.

composer     the one to use: a text, whole or streamed, becomes a `TranscriptDocument`, in steps
segments     where a text may be cut, so that each step is small and streaming redraws only its end
parser       Markdown and the user's plain text to markdown-it tokens
definitions  link and footnote definitions, found ahead of everything else
writer       tokens to blocks of a document; inline, tables: its parts
formats      what each kind of text looks like, made from a theme
properties   what blocks and characters carry beyond Qt's own properties
document     a document that loads nothing but attachments
decorations  what is painted beneath the text: grounds of code, bars of quotes, markers of lists
highlight    colours of code (Pygments)
tex          mathematics as readable Unicode
links        the one gate through which a link leaves the program
"""
