"""Slash commands: text in the composer that is run here and never sent to a model.

command.py  the values: Command, CommandCall, Outcome, and the parser
table.py    all commands by name: run, complete, help; and one window's input

The other modules hold the commands, grouped by subject.
"""
