"""Slash commands: text in the composer that is run here and never sent to a model.

command  the values: Command, CommandCall, Outcome, and the parser
table    all commands by name: run, complete, help; and one window's input

The other modules hold the commands by subject: `conversation`, `library`, `projects`, `recall`,
`search`, `workers`.
"""
