"""The window of Commonplace: everything that draws, nothing that remembers.

The layers, highest first; each may import only those below it (import-linter enforces it):

main         the composition root: loop, services, window, an orderly goodbye in reverse
controllers  what a gesture means: they call `app` and tell views what came of it
bridge       the only module that knows that two threads exist
views        the screens, put together from widgets
models       item models: rows for lists and trees
widgets      parts that know nothing of the program: plain values in, signals out
rendering    text to document: Markdown, code, mathematics, links; no widgets
theme        colours, fonts, the style sheet
errors       how a failure is shown, and the report of a bug
"""
