"""The command line, and what a running window executes for it.

entry.py      main(): open the data directory, or ask the window that holds it
arguments.py  the grammar of commands and options
terminal.py   where a command's words go, here or at the other end of a socket
remote.py     the socket between the command line and a running window
commands/     one module for each family of commands
"""
