"""The window of Commonplace, drawn with Qt on top of `app`.

The layers, highest first; each may import only those below it (import-linter enforces it):

main        the composition root: event loop, services, window, orderly shutdown
presenters  one for each screen: calls `app` and tells its view what to show
bridge      thread crossing between the GUI thread, the pools and the exchange thread
views       the screens, built from widgets
models      item models for lists and trees
widgets     parts without knowledge of the program: plain values in, signals out
rendering   text to documents: Markdown, code, mathematics, links; no widgets
theme       colors, fonts, the style sheet; `icons`: drawings in these colors
errors      presentation of errors, and the report of a bug
"""
