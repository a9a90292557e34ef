"""Slash commands: what is typed in the composer and is no message.

`values` says what a command is, `parser` what of a text is one, `book` holds them all, `session`
runs what one window types. The others are the commands, a module for each thing they are about;
they are put together in `everything`. Nothing here is stored or sent to a model.
"""
