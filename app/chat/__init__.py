"""Talking: the exchange loop, what can be done to conversations, commands and tools.

exchanges.py   starts, streams, stops and stores exchanges, on a thread of its own
running.py     one exchange while it runs: its stream, its journal, its end
planning.py    what the database says of a wish (send, edit, regenerate, retry, continue)
plans.py       and what that wish writes before it runs
preparing.py   what is sent for a message, from what `looking_up` finds in half a second
rolling.py     sums up what fills the window, after a turn
sent.py        a kept prompt as it went out; `inspecting` puts it together for a screen
library.py     what can be done to conversations: rename, pin, archive, trash, tag, branch, fork
"""
