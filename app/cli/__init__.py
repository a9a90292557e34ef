"""The command line, and its execution in a running window.

entry.py      main(): opens the data directory, or forwards the command to the window that holds it
arguments.py  the grammar of commands and options; imports nothing slow
terminal.py   the input and output of a command, here or at the other end of a socket
remote.py     the socket between the command line and a running window
commands/     the commands, grouped by subject
"""
