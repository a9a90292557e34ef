"""Presenters of the open conversation, its composer, and the list of conversations.

open_conversation  its turns; `reply_and_draft`: the reply that grows, and what is not yet sent
turns              stored turns as the transcript shows them
compose            commands about it: send, stop, edit, branch
composer           what is shown while a message is written; `attach`: its files, `choices`: preset
                   and model, `commands`: slash commands
sidebar_list       the list of conversations; `list_commands`: what is done to those in it
navigation         jumps back and forward, find, links
recall, inspector  sources under answers, and explanations of what was recalled
"""
